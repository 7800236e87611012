// The order in which copies out of one GPU run whose streams belong to other GPUs.
#pragma once

#include <deque>

#include "engine/streams/operation.hpp"

namespace vgpu {

/// Observed with CUDA 13.0 on four H200: a copy out of a GPU in a stream of another GPU (a *pull*) is queued
/// on the source GPU when it is enqueued. Pulls of all streams run there in that order, and one that waits in
/// its own stream stalls the others. CUDA does not promise this, so it orders nothing for the race detector.
class PullQueue {
 public:
  /// Inserts what will complete with `done` by the time of enqueueing on the host thread's clock, ns: host
  /// threads run one after the other, but their clocks run in parallel. Behind those of the same time.
  void insert(double enqueued, const Token& done);
  /// True if that pull is the first one. Raises `time` to when it became so.
  bool is_first(const Token& done, double& time);
  /// Completion of the first one that is not complete; nullptr if there is none.
  Token first();
  /// Forgets all pulls.
  void clear() { pulls_.clear(); }

 private:
  struct Pull {
    double enqueued;
    Token done;
  };
  std::deque<Pull> pulls_;
  double free_at_ = 0;  // when the last one has ended that is no longer listed, ns
};

}  // namespace vgpu
