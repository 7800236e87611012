#include "engine/kernel/kernel.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace vgpu {
namespace {
/// Those of the range that a grid of `total` blocks has, in whole clusters.
BlockRange within(const BlockRange& range, std::uint64_t total, std::uint64_t cluster) {
  const std::uint64_t first = std::min(range.first, total) / cluster * cluster;
  const std::uint64_t end =
      std::min(range.first, total) + std::min(range.count, total - std::min(range.first, total));
  return {first, (end - first + cluster - 1) / cluster * cluster};
}

// So many threads of a launch may be suspended because they are impatient (block.hpp): few beside the stacks
// that a process can have, which are some 30,000 on Linux (two mappings for each).
constexpr std::size_t kImpatientThreads = 1024;

constexpr std::int64_t kEnd = kBegin - 1;  // of a kernel that was done before its primary
}  // namespace

KernelLaunch::KernelLaunch(Runtime& runtime, Device& device, Grid grid,
                           std::shared_ptr<const KernelBody> body)
    : runtime_(runtime),
      device_(device),
      grid_(std::move(grid)),
      body_(std::move(body)),
      footprint_{static_cast<int>(grid_.block.x * grid_.block.y * grid_.block.z), grid_.dynamic_shared_bytes},
      blocks_(within(runtime.kernels().blocks(), std::uint64_t{grid_.grid.x} * grid_.grid.y * grid_.grid.z,
                     grid_.cluster)),
      total_(blocks_.count) {
  grid_.body = body_.get();
  if (grid_.meeting != nullptr) grid_.meeting = std::make_shared<GridBarrier>();  // of each launch its own
  grid_.shape = runtime.kernels().shape({grid_.grid, grid_.block, grid_.cluster});
}

void KernelLaunch::begin(double now) {
  grid_.is_first = runtime_.kernels().first_launch(grid_.name, stream->device());
  contexts().begin_kernel(grid_.cluster > 1);
  runtime_.kernels().note_grid(blocks_.first + total_);
  start_ = end_ = now + runtime_.machine().kernel_start_ns(graph != nullptr);
  if (total_ == 0) return end();  // see run_blocks()
  const auto per_multiprocessor =
      (total_ + runtime_.machine().multiprocessors - 1) / runtime_.machine().multiprocessors;
  share_ = static_cast<int>(std::min<std::uint64_t>(device_.multiprocessors().capacity(footprint_),
                                                    std::max<std::uint64_t>(1, per_multiprocessor)));
  const Machine& machine = runtime_.machine();
  grid_.ns_per_basic_block = duration(1);
  // All blocks that run at a time share the memory's rate.
  grid_.bulk_rate =
      machine.memory_rate / static_cast<double>(std::min<std::uint64_t>(
                                total_, static_cast<std::uint64_t>(machine.multiprocessors) * share_));
  grid_.bulk_latency_ns = machine.bulk_latency_ns;
  // Tensor cores are a multiprocessor's own; blocks on it share them.
  grid_.tensor_rate = machine.product_rate_f16 / (static_cast<double>(machine.multiprocessors) * share_);
  order_ = runtime_.schedule().random_order(total_ / grid_.cluster);
}

std::shared_ptr<Primary> KernelLaunch::as_primary() {
  return as_primary_ = std::make_shared<Primary>(Primary{done, &contexts()});
}

void KernelLaunch::note_trigger(Resident& resident, double time) {
  if (std::exchange(resident.triggered, true)) return;
  as_primary_->triggered_at = std::max(as_primary_->triggered_at, time);
  as_primary_->triggered = ++triggered_ == total_;
}

/// Not before its primary: whoever waits for the stream waits for the latest of its operations.
void KernelLaunch::end() {
  if (stream->head() != this) return;
  if (primary != nullptr) end_ = std::max(end_, primary->done->time);
  as_primary_->triggered = true;
  contexts().end_kernel();
  finish(end_);
}

void KernelLaunch::offer(std::vector<Step>& steps) {
  if (finished_ == total_) {
    if (stream->head() == this) steps.push_back({std::max(end_, primary->done->time), this, kEnd});
    return;
  }
  if (awaits_primary_ && primary != nullptr && primary->done->complete) {
    awaits_primary_ = false;
    changed_ = true;
    for (const Resident& resident : residents_) resident.block->primary_ended();
  }
  if (started_ < total_) {
    if (place_version_ != device_.multiprocessors().version()) {
      places_ = device_.multiprocessors().find_several(footprint_, static_cast<int>(grid_.cluster), start_,
                                                       runtime_.schedule().random());
      place_version_ = device_.multiprocessors().version();
    }
    if (!places_.empty()) steps.push_back({places_[0].time, this, static_cast<std::int64_t>(started_)});
  }
  if (stuck_) return;
  if (changed_) offer_residents();
  steps.insert(steps.end(), offered_.begin(), offered_.end());
}

void KernelLaunch::offer_residents() {
  offered_.clear();
  for (const Resident& resident : residents_) {
    if (!resident.block->can_run()) continue;
    offered_.push_back({resident.time, this,
                        static_cast<std::int64_t>(total_ + resident.block->linear_index() - blocks_.first),
                        true, nullptr, resident.block->idle()});
  }
  if (!runtime_.schedule().random() && offered_.size() > 1) {  // the earliest one stands for all
    const bool idle = std::ranges::all_of(offered_, &Step::idle);
    offered_ = {*std::ranges::min_element(offered_, std::less{},
                                          [](const Step& step) { return std::pair(step.time, step.item); })};
    offered_.front().idle = idle;
  }
  // In doubt a block becomes idle, or not, by steps of others, too.
  changed_ = runtime_.schedule().is_in_doubt();
}

void KernelLaunch::step(const Step& step) {
  changed_ = true;
  if (step.item == kEnd) return end();
  if (step.item < static_cast<std::int64_t>(total_)) {
    start(step.time);
  } else {
    const std::uint64_t index = blocks_.first + static_cast<std::uint64_t>(step.item) - total_;
    const auto resident = std::find_if(residents_.begin(), residents_.end(), [index](const Resident& r) {
      return r.block->linear_index() == index;
    });
    if (!advance(*resident)) residents_.erase(resident);
  }
  if (finished_ == total_) end();
}

void KernelLaunch::start(double time) {
  const std::uint64_t number = started_ / grid_.cluster;
  const std::uint64_t index = blocks_.first + (order_.empty() ? number : order_[number]) * grid_.cluster;
  occupied_from = started_ == 0 ? time : std::min(occupied_from, time);
  started_ += grid_.cluster;
  const auto cluster = grid_.cluster > 1 ? std::make_shared<Cluster>() : nullptr;
  const std::vector<Multiprocessors::Place> places = places_;
  for (std::uint64_t rank = 0; rank < grid_.cluster; ++rank) {
    const bool few = residents_.size() * static_cast<std::size_t>(footprint_.threads) < kImpatientThreads;
    auto block = std::make_unique<Block>(grid_, index + rank, runtime_, *this, few);
    if (cluster != nullptr) block->join(*cluster);
    contexts().begin_block(index + rank);
    const int id = device_.multiprocessors().occupy(footprint_, {places[rank].multiprocessor, time});
    residents_.push_back({std::move(block), cluster, places[rank].multiprocessor, id, time});
  }
  // A cluster's blocks all exist before one of them runs.
  if (cluster == nullptr && !advance(residents_.back())) residents_.pop_back();
}

bool KernelLaunch::advance(Resident& resident) {
  if (resident.block->waits_in_vain()) {
    resident.time += resident.block->poll_time();
    return true;
  }
  const std::uint64_t before = resident.block->work();
  const Block::State state = resident.block->run(resident.time);
  resident.time += duration(resident.block->work() - before) + resident.block->stalled();
  if (const auto& triggered_at = resident.block->triggered_at()) note_trigger(resident, *triggered_at);
  switch (state) {
    case Block::State::kFinished:
      note_trigger(resident, resident.time);
      device_.multiprocessors().release(resident.place_id, resident.multiprocessor, resident.time);
      end_ = std::max(end_, resident.time);
      ++finished_;
      if (resident.cluster != nullptr) resident.cluster->keep(std::move(resident.block));
      return false;
    case Block::State::kPolling:
      resident.time += resident.block->poll_time();
      return true;
    case Block::State::kAwaitsOthers:
      return true;
    case Block::State::kFaulted:
      runtime_.errors().fault(resident.block->fault_code(), resident.block->fault_sentence() + enqueued_at());
      stuck_ = true;
      return true;
    default:
      stuck_ = true;
      return true;
  }
}

/// Time that a block needs for its work while `share_` equal blocks are on the same multiprocessor.
double KernelLaunch::duration(std::uint64_t basic_blocks) const {
  const int lanes = std::min(runtime_.machine().lanes, (footprint_.threads + 31) / 32 * 32);
  const double cycles = static_cast<double>(basic_blocks) * runtime_.machine().cycles_per_basic_block / lanes;
  // Few blocks leave part of the multiprocessor idle: sharing costs only what exceeds its lanes.
  const double contention = std::max(1.0, static_cast<double>(share_) * lanes / runtime_.machine().lanes);
  return cycles * contention / runtime_.machine().clock_ghz;
}

std::string KernelLaunch::progress() const {
  if (!begun) return Operation::progress();
  std::string text = std::to_string(finished_) + " of " + std::to_string(total_) + " blocks done";
  if (started_ < total_)
    text += ", " + std::to_string(total_ - started_) + " cannot start (no free multiprocessor)";
  if (!residents_.empty()) {
    text += ", " + std::to_string(residents_.size()) + " resident; " + residents_.front().block->describe();
    const auto& cluster = residents_.front().cluster;
    for (auto next = std::next(residents_.begin()); cluster != nullptr && next != residents_.end(); ++next) {
      if (next->cluster == cluster) text += "; " + next->block->describe();
    }
  }
  return text + polled_words();
}

bool KernelLaunch::polls(const void* word) const {
  return std::any_of(residents_.begin(), residents_.end(), [word](const Resident& resident) {
    const auto polling = resident.block->polling();
    return std::any_of(polling.begin(), polling.end(), [word](const Thread* thread) {
      return thread->notes != nullptr && thread->notes->looked.address == word;
    });
  });
}

std::string KernelLaunch::polled_words() const {
  constexpr std::size_t kMaxWords = 3, kMaxBlocks = 4;
  struct Polled {
    const Look* look;
    std::string word;
    std::size_t threads = 0;
    std::vector<std::string> blocks;
  };
  std::map<std::pair<const void*, int>, Polled> words;  // by address and line
  for (const Resident& resident : residents_) {
    for (const Thread* thread : resident.block->polling()) {
      if (thread->notes == nullptr || thread->notes->looked.address == nullptr) continue;
      const Look& look = thread->notes->looked;
      Polled& polled = words[{look.address, look.at.line}];
      if (polled.threads++ == 0) polled.look = &look;
      if (polled.blocks.empty() || polled.blocks.back() != resident.block->name())
        polled.blocks.push_back(resident.block->name());
      if (polled.word.empty()) polled.word = resident.block->describe_shared(look.address);
    }
  }
  std::string text;
  for (const auto& [key, polled] : words) {
    if (words.size() > kMaxWords && key > std::next(words.begin(), kMaxWords - 1)->first) break;
    const Look& look = *polled.look;
    text += "; " + std::to_string(polled.threads) + (polled.threads == 1 ? " thread of " : " threads of ");
    for (std::size_t i = 0; i < std::min(kMaxBlocks, polled.blocks.size()); ++i)
      text += (i == 0 ? "" : ", ") + polled.blocks[i];
    if (polled.blocks.size() > kMaxBlocks)
      text += " and " + std::to_string(polled.blocks.size() - kMaxBlocks) + " more";
    text += (polled.threads == 1 ? " polls" : " poll") + vgpu::describe(look.at) + " ";
    text += polled.word.empty() ? runtime_.memory().describe(look.address) : polled.word;
    text += ": the word is " + std::to_string(look.bits) + ", awaited is " +
            (look.awaited ? std::to_string(*look.awaited) : "another value");
  }
  return text;
}

}  // namespace vgpu
