// Times: summaries of samples, and the host's clock.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "overlap/gpu/host_timer.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// What several samples (milliseconds, or any other unit) say.
struct Summary {
  double median = 0;  ///< the middle sample; the mean of the two middle ones if their number is even
  double p99 = 0;     ///< 99 % of the samples are at most this (nearest rank: always one of the samples)
  double min = 0;     ///< the smallest sample
  double max = 0;     ///< the largest sample
  int samples = 0;    ///< how many there were
};

/// Throws std::invalid_argument if there is no sample, or if one is not a number.
Summary summarise(std::vector<double> samples);

/// One of several ways to do the same, to be timed.
struct TimedVariant {
  std::string name;  ///< for the table
  /// Enqueues one call on this rank and returns without waiting for it. Other streams that it uses start
  /// after what `stream` holds, and `stream` waits for them at the end.
  std::function<void(cudaStream_t stream)> enqueue;
  /// Called before and after the last call (of a variant that runs several times in a round: each call of the
  /// last round) that is timed on the GPUs, if they are set: to poison its result, and to look at it.
  std::function<void()> before_last = {};
  std::function<void()> after_last = {};  ///< see before_last
};

/// Times of one variant, in milliseconds; the same on all ranks.
struct VariantTimes {
  std::string name;  ///< of the variant
  /// One call on the GPUs, from the gate that starts all of them together to the end on the slowest rank.
  Summary device_ms;
  /// One call with the host's part, from a barrier of the hosts until the last of them knows that its GPU is
  /// done.
  Summary host_ms;
  /// calls_at_once() calls enqueued at once, divided by their number; 0 if that was not timed.
  double back_to_back_ms = 0;
  /// Calls enqueued at once: 20; on virtual GPUs 5, whose modelled time settles sooner.
  static int calls_at_once();
};

/// Times the variants in turns, the first one, with which the others are compared, before each of them
/// (first, second, first, third, ...): so a change of clocks, of temperature or of the caches meets all of
/// them alike. Each runs at least once without a gate before it is timed: see Gate for what a variant may do.
/// Calls at once take most of the time; a sweep over many sizes can leave them out. Collective.
std::vector<VariantTimes> time_variants(Rank& rank, const std::vector<TimedVariant>& variants, int iterations,
                                        int warmup, bool back_to_back = true);

}  // namespace overlap
