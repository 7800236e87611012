// How the threads of a block look at words, and wait for other blocks.
#include <algorithm>
#include <cstdio>

#include "engine/kernel/block.hpp"
#include "engine/machine_state.hpp"

namespace vgpu {
namespace {
// Basic blocks between two polls that are more than a wait's: half of what a thread may run in one go.
constexpr std::uint64_t kComputation = 50'000;
// They take the host some hundred times as long as a wait.
constexpr std::int64_t kWeightOfComputation = 10;
}  // namespace

void Block::poll(double nanoseconds) {
  // Puts all registers that are the callers' right below the frame, for Fiber::state().
  __builtin_unwind_init();
  current_->fiber->frame = __builtin_frame_address(0);
  const RuntimeTurn turn(*this, *current_);
  poll_time_ = polling_.empty() ? nanoseconds : std::min(poll_time_, nanoseconds);
  park(&polling_);
}

void Block::give_way() {
  for (std::uint64_t polls = spins_.polls_to_give_way(); polls > 0; --polls) {
    if (current_->notes != nullptr) current_->notes->looked = {};  // it waits for no word
    poll(0);
  }
}

double Block::read_waited() {
  read_time_ = true;
  return waited_ + stalled_;
}

void Block::watch_polling(std::uint64_t ran) {
  std::uint64_t state = polling_.size();
  for (const Thread* thread : polling_.in_order())
    state += thread->fiber->state() * (2 * number_of(*thread) + 1);
  const bool waits_for_time = std::exchange(read_time_, false);
  const bool repeats = states_.add(state);
  // Without polling threads, a bulk copy is under way.
  if (repeats && !waits_for_time && !polling_.empty()) {
    idle_since_ = schedule_.progress();
  } else {
    idle_since_ = ~std::uint64_t{0};
    if (ran > kComputation) {
      schedule_.note_computation(kWeightOfComputation);
    } else if (waits_for_time) {
      schedule_.note_computation(1);
    }
  }
}

bool Block::waits_in_vain() {
  // A wait may count its looks, so that it makes one now and then.
  constexpr int kLeftOut = 15;
  const bool only_waits = state_ == State::kPolling && !read_time_ && started_ == threads_.size() &&
                          runnable_.empty() && looking_.empty() && !polling_.empty() &&
                          !has_live_neighbours();
  if (!only_waits || left_out_ == kLeftOut || schedule_.random() || schedule_.is_in_doubt() ||
      !std::ranges::all_of(polling_.in_order(),
                           [](const Thread* thread) { return thread->looks.would_see_nothing_new(); })) {
    left_out_ = 0;
    return false;
  }
  ++left_out_;
  waited_ += std::exchange(stalled_, 0) + poll_time_;
  return true;
}

void Block::look(const void* address, std::uint64_t bits, unsigned bytes) {
  SpinDetection::Looks& looks = current_->looks;
  switch (spins_.see(looks, address, bits, bytes)) {
    case SpinDetection::Next::kGoOn:
      break;
    case SpinDetection::Next::kGoOnAfterWait:
      give_way();
      break;
    case SpinDetection::Next::kLetBlockRun: {
      const RuntimeTurn turn(*this, *current_);
      park(&looking_);
      break;
    }
    case SpinDetection::Next::kWait:
      looks.waits = true;
      poll(grid_.poll_ns);
      looks.waits = false;
  }
  SpinDetection::go_on(looks);
}

void Block::make_notes() {
  const hb::RuntimeScope runtime;
  notes_.resize(threads_.size());
  for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i].notes = &notes_[i];
}

void Block::record_atomic(const void* word, const AtomicCall& call, bool wrote, WordWriters& writers) {
  // Kernels have threads of the same number: the bits above it tell launches apart.
  const std::uint64_t me = launch_.id << 56 | race_number_of(*current_);
  const int device = launch_.stream->device();
  if (call.reads()) {
    if (const auto seen = writers.seen(word, me, device, call))
      notes_of(*current_).handover = std::make_unique<Handover>(*seen);
  }
  if (!wrote) return;
  const ThreadNotes* notes = current_->notes;
  const auto passed = [notes](Fence fence) { return notes != nullptr && notes->fenced[fence]; };
  writers.wrote(word, me, device, call, {passed(kFenceOfSystem), passed(kFenceOfGpu), passed(kFenceOfBlock)});
  if (grid_.is_first) warn_of_lazy_loading(word);
}

// CUDA Programming Guide, "Lazy Loading": loading a kernel may need all of the GPU's work to end.
void Block::warn_of_lazy_loading(const void* word) {
  for (const auto& stream : machine_state_.device(launch_.stream->device()).streams()) {
    const Operation* head = stream->head();
    if (head == nullptr || head->id >= launch_.id || !head->polls(word)) continue;
    const std::string sentence =
        head->describe() + head->enqueued_at() + ", waits for a word that " + launch_.describe() +
        launch_.enqueued_at() +
        ", writes in its first launch: with lazy loading that launch may wait until the "
        "first kernel has ended, and real GPUs hang; launch it before, or set CUDA_MODULE_LOADING=EAGER";
    if (machine_state_.kernels().first_warning(nullptr, sentence))
      std::fprintf(stderr, "virtual GPUs: warning: %s\n", sentence.c_str());
  }
}

void Block::warn_of_barriers(const void* caller) {
  const RuntimeTurn turn(*this, *current_);
  const void* other = std::exchange(barrier_caller_, caller);
  if (other == nullptr || caller == nullptr) return;
  const auto [low, high] = std::minmax(caller, other);
  if (!machine_state_.kernels().first_warning(low, std::to_string(reinterpret_cast<std::uintptr_t>(high))))
    return;
  const std::string here = at_line(caller), there = at_line(other);
  if (here == there) return;  // the compiler has doubled it
  std::fprintf(
      stderr,
      "virtual GPUs: warning: %swaits in __syncthreads%s while others of its block wait in the one%s: "
      "CUDA does not define a barrier that threads reach in different branches\n",
      who().c_str(), here.c_str(), there.c_str());
}

// Programming Guide, "Warp Shuffle Functions": the value is undefined then.
void Block::warn_of_absent_lane(int lane, const void* caller) {
  const RuntimeTurn turn(*this, *current_);
  if (!machine_state_.kernels().first_warning(caller, {})) return;
  const bool alive = (warps_[current_->warp].alive >> lane & 1) != 0;
  std::fprintf(stderr,
               "virtual GPUs: warning: %sreads lane %d of its warp%s, but that lane %s: CUDA leaves the "
               "value undefined\n",
               who().c_str(), lane, at_line(caller).c_str(),
               alive ? "is not in the mask" : "has returned, or does not exist");
}

// Counts as a write: another block may not reach that memory any more.
void Block::end_in_cluster() {
  const hb::Context ending = launch_.contexts().ending(cluster_->rank_of(*this));
  hb::acquire(ending, &end_order_);
  shared_.each(
      [&](const std::byte* memory, std::size_t bytes) { hb::write(ending, launch_.site, memory, bytes); });
}

void Block::trigger_dependents() {
  if (triggered_at_) return;
  triggered_at_ = now();
  if (schedule_.random()) poll(0);  // what it does behind the trigger may come late
}

void Block::await_primary() {
  const Primary* primary = launch_.primary.get();
  if (primary == nullptr) return;  // all that was before the kernel has ended
  {
    const RuntimeTurn turn(*this, *current_);
    if (!primary->done->complete) park(&at_primary_);
    pass_time_until(primary->done->time);
  }
  launch_.contexts().acquire_end(linear_index_, current_number(), *primary->contexts);
}

}  // namespace vgpu
