#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "overlap/bench/gate.hpp"
#include "overlap/bench/phase_times.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

constexpr double kMaxVariantMilliseconds = 10e3;
constexpr double kMaxWarmupMilliseconds = 1e3;
constexpr int kFewestIterations = 3;

/// For each index the largest value of any rank. All ranks pass the same number of values.
std::vector<double> largest_of_all_ranks(Rank* rank, const std::vector<double>& own) {
  return rank == nullptr ? own : rank->largest_of_all(own);
}

struct Samples {
  std::vector<double> device_ms, host_ms, back_to_back_ms;
  detail::PhasesOfCalls phases;
};

/// The GPUs' clock, behind a gate.
class GpuClock {
 public:
  explicit GpuClock(Rank& rank) : rank_(rank), gate_(rank), start_(rank.device()), stop_(rank.device()) {}

  double milliseconds(const TimedVariant& variant) {
    const cudaStream_t stream = rank_.stream();
    gate_.close(stream);
    CUDA_CHECK(cudaEventRecord(start_, stream));
    variant.call(stream);
    CUDA_CHECK(cudaEventRecord(stop_, stream));
    gate_.open();
    rank_.synchronize(stream);
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

 private:
  Rank& rank_;
  Gate gate_;
  Event start_, stop_;
};

/// The host's clock. Without a rank, the call itself waits for its GPUs.
double host_ms(Rank* rank, const TimedVariant& variant, int calls) {
  if (rank != nullptr) rank->barrier();
  const cudaStream_t stream = rank != nullptr ? rank->stream() : nullptr;
  const HostTimer timer;
  for (int call = 0; call < calls; ++call) variant.call(stream);
  if (rank != nullptr) rank->synchronize(stream);
  return timer.milliseconds() / calls;
}

/// The number of untimed and of timed calls of a variant.
struct Rounds {
  int warmup, timed;
};

/// Collective. All ranks use the time of the slowest rank's first call, and so run the same number of calls.
Rounds rounds_of(Rank* rank, const TimedVariant& variant, double first_ms, Rounds wanted) {
  if (variant.clock == Clock::kGpu) return wanted;
  const double ms = largest_of_all_ranks(rank, {first_ms}).front();
  const double warmups = std::ceil(kMaxWarmupMilliseconds / ms);
  const double that_fit = std::max<double>(kFewestIterations, std::floor(kMaxVariantMilliseconds / ms));
  return {static_cast<int>(std::min<double>(wanted.warmup, warmups)),
          static_cast<int>(std::min<double>(wanted.timed, that_fit))};
}

/// If the variants are compared with variant 0, it runs before each of them. So each starts with the clocks
/// and caches that variant 0 leaves, and variant 0 with those of each.
std::vector<std::size_t> order_of_a_round(const std::vector<TimedVariant>& variants) {
  std::vector<std::size_t> order;
  const bool compared = variants.size() > 1 && variants.front().clock == Clock::kGpu;
  for (std::size_t v = compared ? 1 : 0; v < variants.size(); ++v) {
    if (compared) order.push_back(0);
    order.push_back(v);
  }
  return order;
}

/// One timed call in its round: by the GPUs, and by the host; or by the host alone.
void time_once(Rank* rank, std::optional<GpuClock>& gpu_clock, const TimedVariant& variant, bool last,
               Samples& samples) {
  const bool by_gpu = variant.clock == Clock::kGpu;
  if (last && variant.before_last) variant.before_last();
  if (by_gpu) {
    samples.device_ms.push_back(gpu_clock->milliseconds(variant));
  } else {
    samples.host_ms.push_back(host_ms(rank, variant, 1));
    if (variant.device_ms) samples.device_ms.push_back(variant.device_ms());
    if (variant.phases) samples.phases.push_back(variant.phases());
  }
  if (last && variant.after_last) variant.after_last();
  if (by_gpu) samples.host_ms.push_back(host_ms(rank, variant, 1));
}

/// Collective.
VariantTimes times_of_all_ranks(Rank* rank, const TimedVariant& variant, const Samples& samples) {
  VariantTimes times{.name = variant.name, .device_ms = {}, .host_ms = {}};
  if (!samples.device_ms.empty()) times.device_ms = summarise(largest_of_all_ranks(rank, samples.device_ms));
  times.host_ms = summarise(largest_of_all_ranks(rank, samples.host_ms));
  if (!samples.back_to_back_ms.empty())
    times.back_to_back_ms = summarise(largest_of_all_ranks(rank, samples.back_to_back_ms)).median;
  if (samples.phases.empty()) return times;
  if (rank == nullptr) {
    detail::summarise_phases({&samples.phases}, times);
    return times;
  }
  // Ranks of one process can read each other's samples; of several processes, each reports its own.
  detail::summarise_phases(rank->exchange_here(&samples.phases), times);
  rank->barrier();  // the samples are valid until every rank has read them
  return times;
}

std::vector<VariantTimes> time_all(Rank* rank, const std::vector<TimedVariant>& variants, int iterations,
                                   int warmup, bool back_to_back) {
  const auto by_gpu = [](const TimedVariant& variant) { return variant.clock == Clock::kGpu; };
  std::optional<GpuClock> gpu_clock;
  if (std::any_of(variants.begin(), variants.end(), by_gpu)) gpu_clock.emplace(*rank);
  std::vector<Rounds> rounds;
  for (const TimedVariant& variant : variants)
    rounds.push_back(rounds_of(rank, variant, host_ms(rank, variant, 1), {warmup, iterations}));

  std::vector<Samples> samples(variants.size());
  const std::vector<std::size_t> order = order_of_a_round(variants);
  for (int i = -warmup; i < iterations; ++i) {
    for (const std::size_t v : order) {
      if (i < -rounds[v].warmup || i >= rounds[v].timed) continue;
      Samples not_timed;
      time_once(rank, gpu_clock, variants[v], i == rounds[v].timed - 1, i < 0 ? not_timed : samples[v]);
    }
  }
  for (int i = 0; back_to_back && i < std::min(iterations, 3); ++i) {
    for (std::size_t v = 0; v < variants.size(); ++v) {
      if (by_gpu(variants[v]))
        samples[v].back_to_back_ms.push_back(
            host_ms(rank, variants[v], VariantTimes::calls_at_once(rank->size())));
    }
  }
  std::vector<VariantTimes> times;
  for (std::size_t v = 0; v < variants.size(); ++v)
    times.push_back(times_of_all_ranks(rank, variants[v], samples[v]));
  return times;
}

}  // namespace

int VariantTimes::calls_at_once(int ranks) {
  if (!backend::modelled_time()) return 20;
  return ranks < 8 ? 5 : ranks <= 16 ? 3 : 2;
}

std::vector<VariantTimes> time_variants(Rank& rank, const std::vector<TimedVariant>& variants, int iterations,
                                        int warmup, bool back_to_back) {
  return time_all(&rank, variants, iterations, warmup, back_to_back);
}

std::vector<VariantTimes> time_variants(const std::vector<TimedVariant>& variants, int iterations,
                                        int warmup) {
  return time_all(nullptr, variants, iterations, warmup, false);
}

}  // namespace overlap
