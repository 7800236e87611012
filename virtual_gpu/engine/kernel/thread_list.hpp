// The CUDA threads of a block, and lists of those that are suspended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/kernel/fiber.hpp"
#include "engine/kernel/spin_detection.hpp"
#include "engine/kernel/words.hpp"
#include "engine/schedule.hpp"
#include "vgpu/types.h"

namespace vgpu {

/// What reports, and fences in the race build, ask of a CUDA thread. Few kernels need it, and it is larger
/// than all the rest: Block::notes_of() makes it.
struct ThreadNotes {
  Look looked;
  PassedWait passed;
  std::unique_ptr<Handover> handover;  // the last one
  // block_fences.cpp: words that it has read relaxed since its last fence; if that was one of the GPU, the
  // last ones before it, which a fence of the system may yet order; and which fences it has passed, by Fence.
  std::vector<const void*> seen{}, seen_before_gpu_fence{};
  bool fenced[3] = {};
  const void* ticket = nullptr;  // the word in global memory that it has changed relaxed since its last fence
};

/// One CUDA thread.
struct Thread {
  uint3 index;
  int lane, warp;
  Fiber* fiber = nullptr;  // where it is suspended or runs; nullptr: not started, or ended
  SpinDetection::Looks looks;
  ThreadNotes* notes = nullptr;
  bool resumed = false;  // after it was suspended: see RuntimeTurn
  bool in_runtime = false;
  // The word of its last volatile load, and that load; of no meaning if `spins_on` is null, as it is once the
  // thread has called anything else.
  const void* spins_on = nullptr;
  const void* spins_at = nullptr;
  bool arrived_at_cluster =
      false;  // in the phase `cluster_phase` of the cluster's barrier, and has not waited
  std::uint64_t cluster_phase = 0;
};

/// Suspended threads, continued in order or, with a seed, at random.
class ThreadList {
 public:
  bool empty() const { return first_ == threads_.size(); }
  std::size_t size() const { return threads_.size() - first_; }
  void push(Thread* thread) { threads_.push_back(thread); }
  Thread* pop(Schedule& schedule) {
    if (schedule.random()) std::swap(threads_[first_], threads_[first_ + schedule.pick(size())]);
    Thread* thread = threads_[first_++];
    if (empty()) {
      threads_.clear();
      first_ = 0;
    }
    return thread;
  }
  std::span<Thread* const> in_order() const { return std::span(threads_).subspan(first_); }
  /// Takes over all threads of `other`.
  void append(ThreadList& other) {
    if (empty() && other.first_ == 0) {
      std::swap(threads_, other.threads_);
      std::swap(first_, other.first_);
    } else {
      threads_.insert(threads_.end(), other.threads_.begin() + static_cast<std::ptrdiff_t>(other.first_),
                      other.threads_.end());
    }
    other.threads_.clear();
    other.first_ = 0;
  }

 private:
  std::vector<Thread*> threads_;
  std::size_t first_ = 0;
};

}  // namespace vgpu
