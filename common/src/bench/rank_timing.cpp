#include <algorithm>
#include <cstddef>
#include <vector>

#include "overlap/bench/gate.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

/// By index, the largest value of any rank. All ranks give equally many.
std::vector<double> largest_of_all_ranks(Rank& rank, const std::vector<double>& own) {
  std::vector<double> largest = own;
  for (const double* other : rank.exchange(own.data())) {
    for (std::size_t i = 0; i < own.size(); ++i) largest[i] = std::max(largest[i], other[i]);
  }
  rank.barrier();  // `own` stays until everybody has read it
  return largest;
}

struct Samples {
  std::vector<double> device_ms, host_ms, back_to_back_ms;
};

class Stopwatch {
 public:
  explicit Stopwatch(Rank& rank) : rank_(rank), gate_(rank), start_(rank.device()), stop_(rank.device()) {}

  double device_ms(const TimedVariant& variant) {
    const cudaStream_t stream = rank_.stream();
    gate_.close(stream);
    CUDA_CHECK(cudaEventRecord(start_, stream));
    variant.enqueue(stream);
    CUDA_CHECK(cudaEventRecord(stop_, stream));
    gate_.open();
    rank_.synchronize(stream);
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

  double host_ms(const TimedVariant& variant, int calls) {
    rank_.barrier();
    const HostTimer timer;
    for (int call = 0; call < calls; ++call) variant.enqueue(rank_.stream());
    rank_.synchronize(rank_.stream());
    return timer.milliseconds() / calls;
  }

 private:
  Rank& rank_;
  Gate gate_;
  Event start_, stop_;
};

/// Variant 0 before each of the others, so that each of them finds the clocks and the caches that variant 0
/// leaves, and variant 0 what any of them leaves.
std::vector<std::size_t> order_of_a_round(std::size_t variants) {
  if (variants <= 1) return std::vector<std::size_t>(variants, 0);
  std::vector<std::size_t> order;
  for (std::size_t v = 1; v < variants; ++v) order.insert(order.end(), {0, v});
  return order;
}

}  // namespace

int VariantTimes::calls_at_once() { return backend::modelled_time() ? 5 : 20; }

std::vector<VariantTimes> time_variants(Rank& rank, const std::vector<TimedVariant>& variants, int iterations,
                                        int warmup, bool back_to_back) {
  Stopwatch stopwatch(rank);
  std::vector<Samples> samples(variants.size());
  for (const TimedVariant& variant : variants) stopwatch.host_ms(variant, 1);
  const std::vector<std::size_t> order = order_of_a_round(variants.size());
  for (int i = -warmup; i < iterations; ++i) {
    for (const std::size_t v : order) {
      const bool last = i == iterations - 1;
      if (last && variants[v].before_last) variants[v].before_last();
      const double device = stopwatch.device_ms(variants[v]);
      if (last && variants[v].after_last) variants[v].after_last();
      const double host = stopwatch.host_ms(variants[v], 1);
      if (i < 0) continue;
      samples[v].device_ms.push_back(device);
      samples[v].host_ms.push_back(host);
    }
  }
  for (int i = 0; back_to_back && i < std::min(iterations, 3); ++i) {
    for (std::size_t v = 0; v < variants.size(); ++v)
      samples[v].back_to_back_ms.push_back(stopwatch.host_ms(variants[v], VariantTimes::calls_at_once()));
  }
  std::vector<VariantTimes> times;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    times.push_back({variants[v].name, summarise(largest_of_all_ranks(rank, samples[v].device_ms)),
                     summarise(largest_of_all_ranks(rank, samples[v].host_ms))});
    if (!back_to_back) continue;
    times.back().back_to_back_ms = summarise(largest_of_all_ranks(rank, samples[v].back_to_back_ms)).median;
  }
  return times;
}

}  // namespace overlap
