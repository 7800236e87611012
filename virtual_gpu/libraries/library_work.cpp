#include "libraries/library_work.hpp"

#include <limits>

namespace vgpu {

LibraryWork::LibraryWork(Runtime& runtime, Device& device, std::uint64_t blocks, double block_ns, int kernels)
    : runtime_(runtime),
      device_(device),
      footprint_{runtime.machine().max_threads, runtime.machine().shared_per_multiprocessor},
      blocks_(blocks),
      block_ns_(block_ns),
      kernels_(kernels) {}

void LibraryWork::begin(double now) {
  const double start_ns = runtime_.machine().kernel_start_ns(graph != nullptr);
  start_ = end_ = now + start_ns;
  block_ns_ += (kernels_ - 1) * start_ns;
}

// One step starts a whole wave, so that thousands of blocks stay cheap. It is numbered by started blocks,
// which with a seed do not depend on modelled times.
void LibraryWork::offer(std::vector<Step>& steps) {
  if (started_ == blocks_) {
    steps.push_back({end_, this, static_cast<std::int64_t>(blocks_)});
    return;
  }
  if (place_version_ != device_.multiprocessors().version()) {
    has_place_ = device_.multiprocessors().find(footprint_, start_, runtime_.schedule().random(), place_);
    place_version_ = device_.multiprocessors().version();
  }
  if (has_place_) steps.push_back({place_.time, this, static_cast<std::int64_t>(started_)});
}

void LibraryWork::step(const Step& step) {
  if (started_ == blocks_) {
    if (last_block_ends()) finish(end_);
    return;
  }
  if (started_ == 0 && !first_block_begins()) return;
  const double until = runtime_.schedule().random() ? std::numeric_limits<double>::max() : step.time;
  started_ += device_.multiprocessors().fill(footprint_, start_, until, block_ns_, blocks_ - started_, end_);
}

bool LibraryWork::can_access(const std::string& what, const void* memory, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(memory);
  const Allocation* allocation = runtime_.memory().find(first);
  std::string why;
  if (allocation == nullptr) {
    why = "lies " + runtime_.memory().locate(first);
  } else if (first + bytes > allocation->begin + allocation->bytes) {
    why = "has " + std::to_string(bytes) + " bytes and goes beyond its memory; it begins " +
          runtime_.memory().locate(first);
  } else if (allocation->kind == MemoryKind::kDevice && allocation->device != device_.id() &&
             !device_.may_access(allocation->device)) {
    why = "lies on GPU " + std::to_string(allocation->device) + ", to which GPU " +
          std::to_string(device_.id()) + " has no access";
  } else {
    return true;
  }
  runtime_.errors().fault(cudaErrorIllegalAddress, describe() + " in " + origin() + ": " + what + " " + why);
  return false;
}

std::string LibraryWork::progress() const {
  if (!begun) return Operation::progress();
  std::string text = std::to_string(started_) + " of " + std::to_string(blocks_) + " tiles started";
  if (started_ < blocks_) text += ", the others wait for a free multiprocessor";
  return text;
}

}  // namespace vgpu
