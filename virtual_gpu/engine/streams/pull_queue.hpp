// The order in which copies out of one GPU run whose streams belong to other GPUs.
#pragma once

#include <deque>

#include "engine/streams/operation.hpp"

namespace vgpu {

/// Seen with CUDA 13.0 on four H200: a copy out of a GPU, enqueued into a stream of another one (a *pull*),
/// is queued on the GPU that has the bytes at once. Those of all streams run there one after the other; the
/// first one holds up the others also while it waits in its own stream. Who begins after whom by this alone
/// does so by no promise of CUDA's: it is no order to the race detector.
class PullQueue {
 public:
  /// Appends what will complete with `done`.
  void append(const Token& done) { pulls_.push_back({0, done}); }
  /// Queues what was enqueued at that time on its host thread's clock, ns, behind what was enqueued until
  /// then: host threads run one after the other here, but their clocks run side by side.
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
