// Chapter 08 on any GPUs: coalesce, the dense way and the way through the host, for every number of ranks and
// every distribution of rows, call after call, with odd values and with bad input.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "08_sparse_baselines/coalesce.cuh"
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/experiments/transport.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "sparse_baselines_values.hpp"
#include "sparse_run.hpp"
#include "sparse_values.hpp"

namespace overlap::sparse_baselines {
namespace {

INSTANTIATE_TEST_SUITE_P(SparseBaselines, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

/// Both algorithms on each case.
template <SparseIndex Index, Floating T>
void expect_both(const std::vector<SparseCase>& cases) {
  {
    SCOPED_TRACE("dense");
    expect_sums<DenseAllReduce, Index, T>(cases);
  }
  SCOPED_TRACE("host");
  expect_sums<HostAllReduce, Index, T>(cases);
}

// ---- Row numbers ----------------------------------------------------------------------------------------

TEST_P(OnRanks, AreRightOnAllDistributions) {
  expect_both<std::int32_t, float>(distribution_cases(GetParam(), 1));
}

TEST_P(OnRanks, AreRightInEveryType) {
  std::vector<SparseCase> cases;
  for (const RowPattern pattern :
       {RowPattern::kUniform, RowPattern::kZipf, RowPattern::kIdentical, RowPattern::kDisjoint})
    cases.push_back({name_of(pattern), {SparseData({97, 5, 11}, GetParam(), pattern, 4, 3)}});
  expect_both<std::int64_t, float>(cases);
  expect_both<std::int32_t, __half>(cases);
  expect_both<std::int64_t, __half>(cases);
  expect_both<std::int32_t, __nv_bfloat16>(cases);
  expect_both<std::int64_t, __nv_bfloat16>(cases);
}

TEST_P(OnRanks, AreRightOnRandomGradients) {  // 200 in all, over the five numbers of ranks
  const std::uint64_t seed = 20261122 + static_cast<std::uint64_t>(GetParam());
  expect_both<std::int32_t, float>(random_cases(GetParam(), 1000 * seed, 40));
}

TEST_P(OnRanks, AreRightForEveryNumberOfFeatures) {
  std::vector<SparseCase> cases;
  for (const std::int64_t features : {1, 2, 3, 5, 8, 33}) {
    cases.push_back({std::to_string(features) + " features",
                     {SparseData({60, features, 12}, GetParam(), RowPattern::kUniform, 5, 1)}});
  }
  expect_both<std::int32_t, float>(cases);
}

TEST_P(OnRanks, AreRightAroundWarpsAndBlocks) {
  std::vector<SparseCase> cases;
  for (const std::int64_t count : sizes_around(kBlockThreads)) {
    cases.push_back({std::to_string(count) + " rows",
                     {SparseData({count + 3, 2, count}, GetParam(), RowPattern::kUniform, 3, 1)}});
  }
  expect_both<std::int32_t, float>(cases);
}

TEST_P(OnRanks, AreRightOnRealNumbers) {
  run_ranks(GetParam(), [](Rank& rank) {
    const SparseData data({80, 9, 25}, rank.size(), RowPattern::kZipf, 10, 1);
    DenseAllReduce<std::int32_t, float> dense(rank, data.shape());
    HostAllReduce<std::int32_t, float> host(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, dense, data, "dense", SparseValues::kReal);
    expect_sum<std::int32_t, float>(rank, host, data, "host", SparseValues::kReal);
  });
}

// ---- One object, several calls --------------------------------------------------------------------------

TEST_P(OnRanks, ACallLeavesNothingBehind) {
  const int ranks = GetParam();
  const SparseShape shape{300, 3, 100};
  const auto drawn = [&](std::int64_t entries, std::uint64_t seed) {
    return SparseData({shape.rows, shape.features, entries}, ranks, RowPattern::kUniform, entries > 0 ? 2 : 0,
                      seed);
  };
  const SparseData empty(shape, Entries(static_cast<std::size_t>(ranks)), 1);
  expect_both<std::int32_t, float>(
      {{"one after the other",
        {drawn(100, 1), drawn(3, 2), empty, drawn(60, 3), empty, drawn(1, 4), drawn(100, 5)}}});
}

// The host's work of the next call must not change data of work that is still enqueued.
TEST_P(OnRanks, CallsMayFollowEachOtherAtOnce) {
  run_ranks(GetParam(), [](Rank& rank) {
    const SparseData data({60, 4, 20}, rank.size(), RowPattern::kUniform, 3, 1);
    const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kExact);
    HostAllReduce<std::int32_t, float> host(rank, data.shape());
    DenseAllReduce<std::int32_t, float> dense(rank, data.shape());
    for (int call = 0; call < 4; ++call) {
      const bool empty = call == 1 && rank.id() == 0;  // a rank whose coalesce does not wait
      host.run(gradient.indices(), gradient.values(), empty ? 0 : gradient.count(), rank.stream());
      dense.run(gradient.indices(), gradient.values(), empty ? 0 : gradient.count(), rank.stream());
    }
    const auto result = host.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
    rank.synchronize(rank.stream());
    EXPECT_EQ(difference(data, SparseValues::kExact, result), "");
  });
}

TEST_P(OnRanks, HostsWaitTwice) {
  run_ranks(GetParam(), [](Rank& rank) {
    const SparseData data({60, 4, 20}, rank.size(), RowPattern::kUniform, 3, 1);
    DenseAllReduce<std::int32_t, float> dense(rank, data.shape());
    HostAllReduce<std::int32_t, float> host(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, dense, data, "dense");
    expect_sum<std::int32_t, float>(rank, host, data, "host");
    EXPECT_EQ(dense.host_waits(), dense.cost(data.shape(), rank.size()).host_waits);
    EXPECT_EQ(host.host_waits(), host.cost(data.shape(), 1, 1).host_waits);
  });
}

// ---- Bad input ------------------------------------------------------------------------------------------

TEST_P(OnRanks, AnIndexOutsideOfTheTableIsRefused) {
  expect_bad_indices_refused<DenseAllReduce, std::int32_t>(GetParam());
  expect_bad_indices_refused<HostAllReduce, std::int32_t>(GetParam());
  expect_bad_indices_refused<DenseAllReduce, std::int64_t>(GetParam());
  expect_bad_indices_refused<HostAllReduce, std::int64_t>(GetParam());
}

template <template <SparseIndex, Floating> class Algorithm, typename Index, typename T>
std::string refusal_of(Rank& rank, SparseShape shape, std::int64_t entries = 0) {
  Algorithm<Index, T> algorithm(rank, shape);
  try {
    algorithm.run(nullptr, nullptr, entries, rank.stream());
  } catch (const SparseInputError& error) {
    return error.what();
  }
  return "";
}

template <template <SparseIndex, Floating> class Algorithm>
void expect_disagreements_refused(int ranks) {
  run_ranks(ranks, [&](Rank& rank) {
    const bool other = rank.id() == 1;
    EXPECT_EQ((refusal_of<Algorithm, std::int32_t, float>(rank, {other ? 9 : 8, 3, 1})),
              "rank 1 has a table of 9 rows, and rank 0 a table of 8 rows");
    EXPECT_EQ((refusal_of<Algorithm, std::int32_t, float>(rank, {8, other ? 4 : 3, 1})),
              "rank 1 has rows of 4 elements, and rank 0 rows of 3 elements");
    EXPECT_EQ((other ? refusal_of<Algorithm, std::int32_t, __half>(rank, {8, 3, 1})
                     : refusal_of<Algorithm, std::int32_t, float>(rank, {8, 3, 1})),
              "rank 1 has f16 elements and int32 indices, and rank 0 f32 elements and int32 indices");
    EXPECT_EQ((other ? refusal_of<Algorithm, std::int64_t, float>(rank, {8, 3, 1})
                     : refusal_of<Algorithm, std::int32_t, float>(rank, {8, 3, 1})),
              "rank 1 has f32 elements and int64 indices, and rank 0 f32 elements and int32 indices");
    for (const std::int64_t entries : {std::int64_t{-1}, std::int64_t{1} << 31}) {
      EXPECT_EQ((refusal_of<Algorithm, std::int32_t, float>(rank, {8, 3, 1}, other ? entries : 0)),
                "rank 1 has less than 0 or more than 2^31 - 1 entries");
    }
    EXPECT_EQ((refusal_of<Algorithm, std::int32_t, float>(rank, {8, 3, 1})), "");
  });
}
TEST_P(OnRanks, RanksThatDisagreeAreRefused) {
  if (GetParam() < 2) GTEST_SKIP() << "needs two ranks";
  expect_disagreements_refused<DenseAllReduce>(GetParam());
  expect_disagreements_refused<HostAllReduce>(GetParam());
}

TEST(SparseBaselines, TheDenseWayNeedsAGpuForEachRankAndTheHostDoesNot) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  if (gpus >= 16) GTEST_SKIP() << "there are GPUs enough";
  EXPECT_THROW(run_ranks(gpus + 1,
                         [](Rank& rank) {
                           DenseAllReduce<std::int32_t, float>(rank, {8, 2, 1});
                         }),
               Skip);
  expect_sums<HostAllReduce, std::int32_t, float>(
      {SparseData({40, 3, 9}, gpus + 1, RowPattern::kUniform, 2, 1)}, "shared GPU");
}

TEST(SparseBaselines, TheDenseWayCountsRowsIn32Bits) {
  const SparseShape shape{std::int64_t{1} << 31, 0, 1};
  EXPECT_THROW(run_ranks(1, [&](Rank& rank) { DenseAllReduce<std::int64_t, __half>(rank, shape); }),
               std::runtime_error);
}

// ---- Coalesce -------------------------------------------------------------------------------------------

template <SparseIndex Index, Floating T>
void expect_coalesced(const std::vector<SparseCase>& cases, SparseValues kind) {
  run_ranks(1, [&](Rank& rank) {
    for (const SparseCase& each : cases) {
      const SparseData& data = each.gradients.front();
      Coalesce<Index, T> coalesce(rank, data.shape());
      const DeviceGradient<Index, T> gradient(rank, data, kind);
      const auto rows = coalesce.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
      rank.synchronize(rank.stream());
      EXPECT_FALSE(coalesce.bad_index());
      const std::vector<Index> indices = on_host(rows.indices, rows.count);
      const std::vector<T> values = on_host(rows.values, rows.count * data.shape().features);
      EXPECT_EQ((data.local_difference<Index, T>(0, kind, std::span<const Index>(indices),
                                                 std::span<const T>(values))),
                "")
          << each.what;
    }
  });
}

TEST(Coalesce, IsRightOnAllDistributions) {
  expect_coalesced<std::int32_t, float>(distribution_cases(1, 1), SparseValues::kExact);
  expect_coalesced<std::int64_t, __half>(distribution_cases(1, 1), SparseValues::kReal);
}

TEST(Coalesce, IsRightOnRandomGradients) {
  expect_coalesced<std::int64_t, float>(random_cases(1, 1, 60, 300), SparseValues::kExact);
}

TEST(Coalesce, AddsInTheOrderOfTheEntries) {
  const auto found = sum_of<HostAllReduce>(1, 1, {{{1, 2, 1, 1, 1}, {1e8F, 5, 1, -1e8F, 1}}});
  EXPECT_EQ(found.values, (std::vector<float>{1, 5}));
}

TEST(Coalesce, RoundsA16BitSumOnce) {
  // 2048 + 1 + 1: 2050 if it is rounded in the end, 2048 if after each addition.
  const auto found = sum_of<HostAllReduce, __half>(1, 1, {{{1, 1, 1}, {2048, 1, 1}}});
  ASSERT_EQ(found.values.size(), 1U);
  EXPECT_EQ(value_of(found.values[0]), 2050);
}

// The bits of all row numbers below V and of V itself, so that a sort uses enough of them.
TEST(Coalesce, RowBits) {
  EXPECT_EQ(row_bits(1), 1);
  EXPECT_EQ(row_bits(2), 2);
  EXPECT_EQ(row_bits(3), 2);
  EXPECT_EQ(row_bits(4), 3);
  EXPECT_EQ(row_bits(5'000'000), 23);
  EXPECT_EQ(row_bits((std::int64_t{1} << 31) + 7), 32);
}

// ---- The two transports ---------------------------------------------------------------------------------

template <template <Floating> class Transport, Floating T>
void expect_transported(int ranks) {
  run_ranks(ranks, [&](Rank& rank) {
    for (const std::int64_t elements : {1, 7, 1000}) {
      std::vector<T> values;
      for (std::int64_t i = 0; i < elements; ++i)
        values.push_back(from_float<T>(transport_value(i, rank.id())));
      const DeviceBuffer<T> in = on_device(rank.device(), values), out(rank.device(), values.size());
      rank.barrier();  // the memory of the transport before is freed
      Transport<T> transport(rank, elements);
      for (int call = 0; call < 3; ++call) {
        CUDA_CHECK(cudaMemset(out.data(), 0xFF, out.bytes()));
        CUDA_CHECK(cudaDeviceSynchronize());
        transport.run(in.data(), out.data(), rank.stream());
        rank.synchronize(rank.stream());
        const std::vector<T> found = on_host(out.data(), elements);
        for (std::int64_t i = 0; i < elements; ++i) {
          ASSERT_EQ(value_of(found[static_cast<std::size_t>(i)]), transport_sum(i, ranks))
              << "element " << i << " of " << elements;
        }
      }
    }
  });
}

TEST_P(OnRanks, TransportsAddUp) {
  expect_transported<NcclTransport, float>(GetParam());
  expect_transported<HostTransport, float>(GetParam());
  expect_transported<NcclTransport, __nv_bfloat16>(GetParam());
  expect_transported<HostTransport, __nv_bfloat16>(GetParam());
}

TEST(Topology, NamesEachOtherGpuAtMostOnce) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  const std::vector<GpuLinks> all = topology(gpus);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(gpus));
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const std::vector<int>& reaches = all[static_cast<std::size_t>(gpu)].reaches;
    EXPECT_EQ(std::set<int>(reaches.begin(), reaches.end()).size(), reaches.size());
    for (const int peer : reaches) EXPECT_NE(peer, gpu);
    EXPECT_FALSE(all[static_cast<std::size_t>(gpu)].place.bus_id.empty());
    EXPECT_FALSE(all[static_cast<std::size_t>(gpu)].place.numa_node.empty());
  }
}

TEST(Topology, SettingsOfNcclAreNamed) {
  unsetenv("NCCL_P2P_DISABLE");
  EXPECT_EQ(transport_settings().find("NCCL_P2P_DISABLE"), std::string::npos);
  setenv("NCCL_P2P_DISABLE", "1", 1);
  EXPECT_NE(transport_settings().find("NCCL_P2P_DISABLE=1"), std::string::npos);
  unsetenv("NCCL_P2P_DISABLE");
}

}  // namespace
}  // namespace overlap::sparse_baselines
