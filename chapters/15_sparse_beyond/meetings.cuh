// Chapter 15: where the streams of all ranks meet. Once bare in chapter 04; here for whoever reads and writes
// other ranks' rows by kernels.
#pragma once

#include <cuda_runtime.h>

#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"

namespace overlap::sparse_beyond {

/// So many meetings in a call, each at most once.
class Meetings {
 public:
  /// Throws as Signals do.
  Meetings(Rank& rank, int count) : rank_(rank), ring_(rank), signals_(rank, count * rank.size()) {}

  void begin_call() { signals_.begin_call(); }  ///< before the first meeting of a call

  /// What all ranks' streams have done before comes before what any of them does after.
  void meet(int meeting, cudaStream_t stream) {
    for (int i = 1; i < rank_.size(); ++i)
      signals_.raise(ring_.at(i), meeting * rank_.size() + rank_.id(), stream);
    for (int i = 1; i < rank_.size(); ++i) signals_.await(meeting * rank_.size() + ring_.at(i), stream);
  }

 private:
  Rank& rank_;
  Ring ring_;
  Signals signals_;  // [meeting][raising rank]
};

}  // namespace overlap::sparse_beyond
