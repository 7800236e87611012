// Times: summaries of samples, and the host's clock.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "overlap/gpu/host_timer.hpp"
#include "overlap/gpu/phase_clock.hpp"
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

/// By what a call is timed.
enum class Clock {
  kGpu,   ///< by events of its stream, behind a gate that starts all ranks together; and by the host
  kHost,  ///< by the host alone, which has to wait within the call: a gate would never open
};

/// One of several ways to do the same, to be timed.
struct TimedVariant {
  std::string name;  ///< for the table
  /// One call on this rank. What is still enqueued at its end is on `stream`; other streams that it uses
  /// start after what `stream` holds, and `stream` waits for them. By Clock::kGpu it waits for nothing
  /// itself.
  std::function<void(cudaStream_t stream)> call;
  /// Called before and after the last timed call, if they are set: to poison its result, and to look at it.
  /// (By Clock::kGpu the last one that is timed on the GPUs; of the first variant, which runs several times
  /// in a round, each of the last round.)
  std::function<void()> before_last = {};
  std::function<void()> after_last = {};  ///< see before_last
  Clock clock = Clock::kGpu;              ///< by what it is timed
  /// By Clock::kHost, if they are set: the phases of the call that has ended, and its time on the GPUs.
  std::function<std::vector<Phase>()> phases = {};
  std::function<double()> device_ms = {};  ///< see phases
};

/// Times of one variant, in milliseconds; the same on all ranks.
struct VariantTimes {
  std::string name;  ///< of the variant
  /// One call on the GPUs, from the gate that starts all of them together to the end on the slowest rank. By
  /// Clock::kHost what the variant says of it, if it does.
  Summary device_ms;
  /// One call with the host's part, from a barrier of the hosts until the last of them knows that its GPU is
  /// done.
  Summary host_ms;
  /// calls_at_once(ranks) calls enqueued at once, divided by their number; 0 if that was not timed.
  double back_to_back_ms = 0;
  /// Medians of its phases, each on the slowest rank; of the last one, "all_reduce", see below.
  std::vector<Phase> phases = {};
  /// How much later the last rank entered the all-reduce than the first. "all_reduce" is the shortest of any
  /// rank: that of the last one, which waits for no other.
  double skew_ms = 0;
  /// Calls enqueued at once: 20; on virtual GPUs 5, whose modelled time settles sooner, from 8 ranks on 3,
  /// from 17 on 2, because these calls take most of a run's time.
  static int calls_at_once(int ranks);
};

/// Times the variants interleaved, so that changes of clocks, temperature and caches affect all of them
/// alike; a first variant by Clock::kGpu is the one with which the others are compared, and runs before each
/// of them (first, second, first, third, ...). Each runs at least once without a gate before it is timed: see
/// Gate for what a variant may do. By Clock::kHost, one whose calls take long runs less often than
/// `iterations`, at least 3 times (but not more often than that). Calls at once take most of the time; a
/// sweep over many sizes can leave them out. Collective.
std::vector<VariantTimes> time_variants(Rank& rank, const std::vector<TimedVariant>& variants, int iterations,
                                        int warmup, bool back_to_back = true);
/// The same of a program without ranks, whose variants are all by Clock::kHost and wait for their GPUs.
std::vector<VariantTimes> time_variants(const std::vector<TimedVariant>& variants, int iterations,
                                        int warmup);

}  // namespace overlap
