// The gate, and times that are equal on all ranks.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "overlap/bench/gate.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/peer_buffer.hpp"

namespace overlap {
namespace {

class RankTimingTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RankTimingTest, testing::Values(1, 2, 4));

/// Runs for a time that grows with `rounds`.
__global__ void work(int* sink, int rounds) {
  int sum = *sink;
  for (int i = 0; i < rounds; ++i) sum = sum * 3 + i;
  *sink = sum;
}

TEST_P(RankTimingTest, NothingRunsBehindAClosedGate) {
  run_ranks(GetParam(), [](Rank& rank) {
    PinnedBuffer<int> done(1), beside(1);
    Gate gate(rank);
    const cudaStream_t stream = rank.stream(), other = rank.second_stream();
    done[0] = beside[0] = 0;
    work<<<1, 1, 0, stream>>>(done.data(), 0);
    rank.synchronize(stream);
    for (int round = 1; round <= 5; ++round) {
      gate.close(stream);
      work<<<1, 1, 0, stream>>>(done.data(), round);
      CUDA_CHECK(cudaGetLastError());
      work<<<1, 1, 0, other>>>(beside.data(), 20000);  // so long that the other one could have ended
      CUDA_CHECK(cudaGetLastError());
      rank.synchronize(other);
      EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
      gate.open();
      rank.synchronize(stream);
    }
  });
}

/// The gate's word reaches the same value on all ranks, whichever rank closes or opens it.
TEST_P(RankTimingTest, OpensForTheLastOne) {
  run_ranks(GetParam(), [](Rank& rank) {
    PeerBuffer<int> sum(rank, 1);
    Gate gate(rank);
    // Not the whole GPU: another rank on it may have closed the gate already.
    CUDA_CHECK(cudaMemsetAsync(sum.local(), 0, sizeof(int), rank.stream()));
    rank.synchronize(rank.stream());
    rank.barrier();
    for (int i = 0; i < rank.id(); ++i) {  // ranks arrive at different times
      (void)cudaStreamQuery(rank.stream());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    gate.close(rank.stream());
    CUDA_CHECK(cudaMemsetAsync(sum.on(rank.next()), 1, sizeof(int), rank.stream()));
    gate.open();
    rank.synchronize(rank.stream());
    rank.barrier();
    int found = 0;
    CUDA_CHECK(cudaMemcpy(&found, sum.local(), sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT_EQ(found, 0x01010101);
  });
}

TEST_P(RankTimingTest, TheFirstVariantIsTimedBeforeEachOfTheOthers) {
  run_ranks(GetParam(), [](Rank& rank) {
    std::string calls;
    const auto variant = [&calls](char name) {
      return TimedVariant{std::string(1, name), [&calls, name](cudaStream_t) { calls += name; },
                          [&calls] { calls += '<'; }, [&calls] { calls += '>'; }};
    };
    const auto times = time_variants(rank, {variant('a'), variant('b'), variant('c')}, 2, 0);
    EXPECT_EQ(calls.substr(0, 31),
              "abc"
              "aabbaacc"
              "<a>a<b>b<a>a<c>c"
              "aaaa");
    EXPECT_EQ(times[0].device_ms.samples, 4);  // twice in each of two rounds
    EXPECT_EQ(times[1].device_ms.samples, 2);
    EXPECT_EQ(times[2].device_ms.samples, 2);
  });
}

TEST_P(RankTimingTest, VariantsAreTimedInTurnsAndAllRanksAgree) {
  static constexpr int kIterations = 4, kWarmup = 2;
  run_ranks(GetParam(), [](Rank& rank) {
    DeviceBuffer<int> sink(rank.device(), 1);
    CUDA_CHECK(cudaMemset(sink.data(), 0, sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<int> calls;
    const auto variant = [&](int which, int rounds) {
      return TimedVariant{"rounds " + std::to_string(rounds),
                          [&calls, &sink, which, rounds](cudaStream_t stream) {
                            calls.push_back(which);
                            work<<<1, 1, 0, stream>>>(sink.data(), rounds);
                            CUDA_CHECK(cudaGetLastError());
                          }};
    };
    // All ranks report the time of the last, slow rank.
    const int slow = rank.id() == rank.size() - 1 ? 20000 : 10;
    const auto times = time_variants(rank, {variant(0, 10), variant(1, slow)}, kIterations, kWarmup);

    ASSERT_EQ(times.size(), 2u);
    EXPECT_EQ(times[0].name, "rounds 10");
    EXPECT_EQ(times[0].device_ms.samples, kIterations);
    EXPECT_GT(times[1].device_ms.min, times[0].device_ms.median);
    EXPECT_GT(times[1].back_to_back_ms, times[0].back_to_back_ms);
    // Not for the short kernel: events around it take as long as its launch (2 x H100: 15.9 us both).
    EXPECT_GT(times[1].host_ms.median, times[1].device_ms.min);
    for (const VariantTimes& time : times) {
      EXPECT_GT(time.device_ms.min, 0);
      EXPECT_GT(time.host_ms.median, 0);
      for (const double other : rank.exchange(time.device_ms.median)) EXPECT_EQ(other, time.device_ms.median);
    }
    // Once each; then gated and ungated, interleaved; then three batches of twenty.
    std::vector<int> expected = {0, 1};
    for (int i = 0; i < kWarmup + kIterations; ++i) expected.insert(expected.end(), {0, 0, 1, 1});
    for (int i = 0; i < 3; ++i) {
      expected.insert(expected.end(), VariantTimes::calls_at_once(rank.size()), 0);
      expected.insert(expected.end(), VariantTimes::calls_at_once(rank.size()), 1);
    }
    EXPECT_EQ(calls, expected);

    calls.clear();
    const auto without = time_variants(rank, {variant(0, 10)}, 2, 0, false);
    EXPECT_EQ(calls, std::vector<int>(5, 0));
    EXPECT_GT(without.front().device_ms.min, 0);
    EXPECT_EQ(without.front().back_to_back_ms, 0);
  });
}

/// The hosts arrive at the gate at different times: it opens when the last one has arrived.
TEST_P(RankTimingTest, OpensForNobodyBeforeAllHaveCome) {
  run_ranks(GetParam(), [](Rank& rank) {
    std::atomic<bool> here = false;
    const std::vector<std::atomic<bool>*> all = rank.exchange(&here);
    DeviceBuffer<int> sink(rank.device(), 1);
    CUDA_CHECK(cudaMemset(sink.data(), 0, sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
    Gate gate(rank);
    gate.close(rank.stream());
    if (rank.id() == rank.size() - 1) {  // delays its host
      work<<<1, 1, 0, rank.second_stream()>>>(sink.data(), 20000);
      CUDA_CHECK(cudaGetLastError());
      rank.synchronize(rank.second_stream());
    }
    here = true;
    gate.open();
    rank.synchronize(rank.stream());
    for (const std::atomic<bool>* one : all) EXPECT_TRUE(*one);
    rank.barrier();  // `here` must outlive all reads
  });
}

/// Call i takes `rounds[i]`; the last entry holds for all later calls.
TimedVariant by_call(const DeviceBuffer<int>& sink, std::vector<int> rounds) {
  return {"by call", [&sink, rounds = std::move(rounds), call = std::size_t{0}](cudaStream_t stream) mutable {
            work<<<1, 1, 0, stream>>>(sink.data(), rounds[std::min(call++, rounds.size() - 1)]);
            CUDA_CHECK(cudaGetLastError());
          }};
}

TEST_P(RankTimingTest, OnlyTimedCallsCountAndOfTheirTimesTheMedianDoes) {
  run_ranks(GetParam(), [](Rank& rank) {
    DeviceBuffer<int> sink(rank.device(), 1);
    CUDA_CHECK(cudaMemset(sink.data(), 0, sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
    constexpr int kUnit = 20000;
    const auto one = time_variants(rank, {by_call(sink, {kUnit})}, 3, 0).front();
    // One call, and two warm-up rounds (a gated and an ungated call each), then three that count.
    const int w = 30 * kUnit, s = kUnit / 3, l = 5 * kUnit;
    std::vector<int> rounds = {w, w, w, w, w, s, s, kUnit, kUnit, l, l};
    for (const int of_batch : {s, kUnit, l})  // three batches of calls
      rounds.insert(rounds.end(), static_cast<std::size_t>(VariantTimes::calls_at_once(rank.size())),
                    of_batch);
    const auto uneven = time_variants(rank, {by_call(sink, rounds)}, 3, 2).front();
    EXPECT_EQ(uneven.device_ms.samples, 3);
    EXPECT_EQ(uneven.host_ms.samples, 3);
    if (!backend::modelled_time()) return;  // real clocks vary
    EXPECT_NEAR(uneven.device_ms.median, one.device_ms.median, 0.3 * one.device_ms.median);
    EXPECT_NEAR(uneven.host_ms.median, one.host_ms.median, 0.3 * one.host_ms.median);
    EXPECT_NEAR(uneven.back_to_back_ms, one.back_to_back_ms, 0.3 * one.back_to_back_ms);
    EXPECT_NEAR(one.back_to_back_ms, one.device_ms.median, 0.3 * one.device_ms.median) << "each, not all";
    EXPECT_LT(uneven.device_ms.max, 8 * one.device_ms.median);
    EXPECT_LT(uneven.host_ms.max, 8 * one.host_ms.median);
  });
}

/// If ranks wait for each other in a call, no rank begins it while the last rank is still busy.
TEST_P(RankTimingTest, TheHostsTimeBeginsWhenAllAreThere) {
  run_ranks(GetParam(), [](Rank& rank) {
    DeviceBuffer<int> sink(rank.device(), 1);
    CUDA_CHECK(cudaMemset(sink.data(), 0, sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto spin = [&](cudaStream_t stream, int rounds) {
      work<<<1, 1, 0, stream>>>(sink.data(), rounds);
      CUDA_CHECK(cudaGetLastError());
    };
    // Much longer than a host's wake-up, which the model does not include.
    const int long_rounds = backend::modelled_time() ? 100'000 : 20'000'000;
    const auto meets = [&](cudaStream_t stream) {
      rank.barrier();
      spin(stream, long_rounds / 20);
    };
    // Between the gated and the ungated call the last rank's host is busy.
    const auto is_late = [&] {
      if (rank.id() != rank.size() - 1) return;
      spin(rank.second_stream(), long_rounds);
      rank.synchronize(rank.second_stream());
    };
    const auto times = time_variants(rank, {{"meets", meets, {}, is_late}}, 1, 0, false).front();
    const auto alone =
        time_variants(rank, {{"long", [&](cudaStream_t stream) { spin(stream, long_rounds); }}}, 1, 0, false);
    EXPECT_LT(times.host_ms.median, 0.8 * alone.front().device_ms.median);
  });
}

}  // namespace
}  // namespace overlap
