// What a block's asynchronous work needs of it.
#include <bit>

#include "engine/kernel/block.hpp"

namespace vgpu {

std::string position(const uint3& p) {
  return "(" + std::to_string(p.x) + "," + std::to_string(p.y) + "," + std::to_string(p.z) + ")";
}

std::string Block::name() const { return "block " + position(index_); }

std::string Block::who() const {
  return "kernel '" + grid_.name + "': thread " + position(current_->index) + " of " + name() + " ";
}

bool Block::elect() {
  unsigned int present = 0;
  exchange(0xffffffffu, 0, &present, false);
  Warp& warp = warps_[current_->warp];
  if (warp.elected < 0 || !(present >> warp.elected & 1)) {
    auto skipped = static_cast<int>(schedule_.pick(static_cast<std::uint64_t>(std::popcount(present))));
    for (warp.elected = 0; !(present >> warp.elected & 1) || skipped-- > 0; ++warp.elected) {
    }
  }
  return current_->lane == warp.elected;
}

void Block::park(ThreadList* list) {
  if (list != nullptr) list->push(current_);
  let_others_run();
}

void Block::wake(ThreadList& parked) {
  schedule_.note_progress();
  runnable_.append(parked);
}

void Block::wake(Thread& parked) {
  schedule_.note_progress();
  runnable_.push(&parked);
}

void Block::see(const char& point) { launch_.contexts().see(linear_index_, current_number(), &point); }

void Block::fence_proxy(Space space) { launch_.contexts().fence(linear_index_, current_number(), space); }

void Block::note_access(const void* memory, std::size_t bytes, bool write, const void* caller) {
  const hb::Context context = context_of(*current_), before = hb::running_context();
  hb::enter(context);
  hb::push_thread(race_number_of(*current_));
  const auto access = write ? &hb::write : &hb::read;
  access(context, launch_.site, memory, bytes, caller);
  hb::pop_thread();
  hb::enter(before);
}

double Block::now() const {
  return run_from_ + stalled_ + static_cast<double>(basic_blocks() - ran_before_) * grid_.ns_per_basic_block;
}

void Block::pass_time_until(double time) { stalled_ += std::max(0.0, time - now()); }

void Block::fail(const std::string& sentence, cudaError_t code) {
  fault_code_ = code;
  fault_sentence_ = sentence;
  state_ = State::kFaulted;
}

void Block::leave_if_failed() {
  if (failed()) fault(fault_sentence_, fault_code_);
}

void Block::find_runnable() {
  if (async_ != nullptr) {
    if (has_live_neighbours() && async_->reaches_others() && schedule_.pick(2) == 1) {
      // With a seed: the other blocks of the cluster may run before the copy comes.
      state_ = State::kPolling;
      poll_time_ = 0;
      return;
    }
    while (runnable_.empty() && !failed() && async_->do_needed()) {
    }
    // Those who look may look for a copy's end. Whoever waits for others lets them see all that it has done.
    if (runnable_.empty() && !failed() && !looking_.empty()) async_->do_any(true);
    while (runnable_.empty() && looking_.empty() && !failed() && async_->do_any(false)) {
    }
    if (failed()) return;
  }
  if (runnable_.empty()) runnable_.append(looking_);
}

void Block::finish_async() {
  const std::string left = async_->finish();
  leave_if_failed();
  if (!left.empty()) fault("kernel '" + grid_.name + "': " + name() + " " + left);
}

}  // namespace vgpu
