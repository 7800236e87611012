// A barrier of all ranks' streams, by signals: what chapter 05 writes out, for two ranks chapter 04.
#pragma once

#include <cuda_runtime.h>

#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"

namespace overlap {

/// So many meetings of all ranks' streams in a call, each at most once.
class SignalBarrier {
 public:
  /// Throws as Signals do.
  SignalBarrier(Rank& rank, int meetings)
      : rank_(rank), ring_(rank), signals_(rank, meetings * rank.size()) {}

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

}  // namespace overlap
