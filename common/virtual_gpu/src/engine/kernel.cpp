#include "engine/kernel.hpp"

#include <algorithm>
#include <numeric>

namespace vgpu {
namespace {
/// Those of the range that a grid of `total` blocks has.
BlockRange within(const BlockRange& range, std::uint64_t total) {
  const std::uint64_t first = std::min(range.first, total);
  return {first, std::min(range.count, total - first)};
}

// So many threads of a launch may be suspended because they are impatient (block.hpp): few beside the stacks
// that a process can have, which are some 30,000 on Linux (two mappings for each).
constexpr std::size_t kImpatientThreads = 1024;
}  // namespace

KernelLaunch::KernelLaunch(Runtime& runtime, Device& device, Grid grid,
                           std::shared_ptr<const KernelBody> body)
    : runtime_(runtime),
      device_(device),
      grid_(std::move(grid)),
      body_(std::move(body)),
      footprint_{static_cast<int>(grid_.block.x * grid_.block.y * grid_.block.z), grid_.dynamic_shared_bytes},
      blocks_(within(runtime.kernels().blocks(), std::uint64_t{grid_.grid.x} * grid_.grid.y * grid_.grid.z)),
      total_(blocks_.count) {
  grid_.body = body_.get();
}

void KernelLaunch::begin(double now) {
  stream->contexts().begin_kernel();
  start_ = end_ = now + runtime_.machine().kernel_start_ns(graph != nullptr);
  if (total_ == 0) {  // see run_blocks()
    stream->contexts().end_kernel();
    return finish(start_);
  }
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
  if (runtime_.scheduler().random()) {
    order_.resize(total_);
    std::iota(order_.begin(), order_.end(), 0u);
    for (std::size_t n = order_.size(); n > 1; --n)
      std::swap(order_[n - 1], order_[runtime_.scheduler().pick(n)]);
  }
}

void KernelLaunch::offer(std::vector<Step>& steps) {
  if (started_ < total_) {
    if (place_version_ != device_.multiprocessors().version()) {
      has_place_ = device_.multiprocessors().find(footprint_, start_, runtime_.scheduler().random(), place_);
      place_version_ = device_.multiprocessors().version();
    }
    if (has_place_) steps.push_back({place_.time, this, static_cast<std::int64_t>(started_)});
  }
  if (stuck_) return;
  for (const Resident& resident : residents_) {
    steps.push_back({resident.time, this,
                     static_cast<std::int64_t>(total_ + resident.block->linear_index() - blocks_.first),
                     true});
  }
}

void KernelLaunch::step(const Step& step) {
  if (step.item < static_cast<std::int64_t>(total_)) {
    start_block(step.time);
  } else {
    const std::uint64_t index = blocks_.first + static_cast<std::uint64_t>(step.item) - total_;
    const auto resident = std::find_if(residents_.begin(), residents_.end(), [index](const Resident& r) {
      return r.block->linear_index() == index;
    });
    if (!advance(*resident)) residents_.erase(resident);
  }
  if (finished_ == total_) {
    stream->contexts().end_kernel();
    finish(end_);
  }
}

void KernelLaunch::start_block(double time) {
  const std::uint64_t index = blocks_.first + (order_.empty() ? started_ : order_[started_]);
  occupied_from = started_ == 0 ? time : std::min(occupied_from, time);
  ++started_;
  const bool few = residents_.size() * static_cast<std::size_t>(footprint_.threads) < kImpatientThreads;
  auto block = std::make_unique<Block>(grid_, index, runtime_.scheduler(), *this, few);
  const int id = device_.multiprocessors().occupy(footprint_, place_);
  residents_.push_back({std::move(block), place_.multiprocessor, id, time});
  if (!advance(residents_.back())) residents_.pop_back();
}

bool KernelLaunch::advance(Resident& resident) {
  const std::uint64_t before = resident.block->work();
  const Block::State state = resident.block->run(resident.time);
  resident.time += duration(resident.block->work() - before) + resident.block->stalled();
  switch (state) {
    case Block::State::kFinished:
      device_.multiprocessors().release(resident.place_id, resident.multiprocessor, resident.time);
      end_ = std::max(end_, resident.time);
      ++finished_;
      return false;
    case Block::State::kPolling:
      resident.time += resident.block->poll_time();
      return true;
    case Block::State::kFaulted:
      runtime_.errors().fault(resident.block->fault_code(), resident.block->fault_sentence());
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
  }
  return text;
}

}  // namespace vgpu
