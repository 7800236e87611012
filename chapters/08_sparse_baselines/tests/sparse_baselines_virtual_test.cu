// Chapter 08 on virtual GPUs: right in any order of events, moving just the bytes of its cost cards, and with
// the order of times that the chapter states.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/experiments/transport.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "far_rows.hpp"
#include "overlap/bench/timing.hpp"
#include "sparse_virtual_tests.hpp"

namespace overlap::sparse_baselines {
namespace {

using Dense = DenseAllReduce<std::int32_t, float>;
using Host = HostAllReduce<std::int32_t, float>;

SparseData gradients(int ranks, std::uint64_t seed = 1) {
  return SparseData({50, 3, 14}, ranks, RowPattern::kUniform, 5, seed);
}

TEST_F(OnVirtualGpus, AreRightInManySchedules) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(10, [ranks](std::uint64_t seed) {
      const std::vector<SparseData> calls = {gradients(ranks, seed), gradients(ranks, seed + 100)};
      expect_sums<DenseAllReduce, std::int32_t, float>(calls, "dense");
      expect_sums<HostAllReduce, std::int32_t, float>(calls, "host");
    });
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule(
      [] { expect_sums<HostAllReduce, std::int32_t, float>({gradients(4)}, "host"); });
}

/// The bytes of one call, without those of the constructor and of the data.
template <typename Algorithm>
LinkTraffic traffic_of_a_call(const SparseData& data) {
  LinkTraffic moved;
  run_ranks(data.ranks(), [&](Rank& rank) {
    Algorithm algorithm(rank, data.shape());
    const LinkTraffic all = overlap::traffic_of_a_call(rank, algorithm, data);
    if (rank.id() == 0) moved = all;
  });
  return moved;
}

TEST_F(OnVirtualGpus, TheDenseWayMovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 4, 8}) {
    vgpu::reset();
    // So many elements that P divides them.
    const SparseData data({64, 6, 9}, ranks, RowPattern::kZipf, 3, 1);
    const LinkTraffic moved = traffic_of_a_call<Dense>(data);
    const Cost cost = Dense::cost(data.shape(), ranks);
    EXPECT_EQ(cost.memory, 64 * 6 * 4);
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (to == from) continue;
        const bool is_link = to == (from + 1) % ranks;
        EXPECT_EQ(moved.over(from, to).bytes, is_link ? cost.bytes_out : 0)
            << from << " to " << to << " of " << ranks;
      }
    }
  }
}

TEST_F(OnVirtualGpus, TheHostWayMovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 3, 8}) {
    vgpu::reset();
    const SparseData data({90, 6, 9}, ranks, RowPattern::kZipf, 3, 1);
    const LinkTraffic moved = traffic_of_a_call<Host>(data);
    const Cost cost = Host::cost(data.shape(), 9, static_cast<std::int64_t>(data.global_rows().size()));
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(moved.over(rank, vgpu::kHost).bytes, cost.bytes_to_host) << rank << " of " << ranks;
      EXPECT_EQ(moved.over(vgpu::kHost, rank).bytes, cost.bytes_from_host) << rank << " of " << ranks;
      EXPECT_EQ(moved.out_of(rank).bytes, 0) << rank << " of " << ranks;
    }
  }
}

/// Modelled milliseconds of the second call, from a barrier to the last rank's end.
template <typename Algorithm>
double milliseconds_of(const SparseData& data) {
  vgpu::reset();
  double result = 0;
  run_ranks(data.ranks(), [&](Rank& rank) {
    Algorithm algorithm(rank, data.shape());
    const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kReal);
    double ms = 0;
    for (int call = 0; call < 2; ++call) {
      rank.barrier();
      const HostTimer timer;
      algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
      rank.synchronize(rank.stream());
      ms = timer.milliseconds();
    }
    const std::vector<double> all = rank.exchange(ms);
    if (rank.id() == 0) result = *std::max_element(all.begin(), all.end());
  });
  return result;
}

TEST_F(OnVirtualGpus, TheDenseWayIsFasterThanTheHostWhereRowsAreMany) {
  const SparseData many({1000, 32, 60}, 4, RowPattern::kUniform, 6, 1);
  EXPECT_LT(milliseconds_of<Dense>(many), milliseconds_of<Host>(many));
}

// The time of the dense algorithm does not depend on the number of rows; that through the host does.
TEST_F(OnVirtualGpus, TheHostIsFasterThanTheDenseWayWhereRowsAreFew) {
  const SparseData few({20000, 32, 2}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_LT(milliseconds_of<Host>(few), milliseconds_of<Dense>(few));
}

TEST_F(OnVirtualGpus, TheAddsOfTheHostTakeAsLongAsItsMemory) {
  const std::int64_t kEntries = 50;
  const SparseData data({1000, 64, kEntries}, 4, RowPattern::kDisjoint, 0, 1);
  double add_ms = 0;  // of the slowest rank
  run_ranks(4, [&](Rank& rank) {
    Host host(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, host, data, "host");
    double own = 0;
    for (const Phase& phase : host.phases()) own += phase.name == "add" ? phase.ms : 0;
    const std::vector<double> all = rank.exchange(own);
    if (rank.id() == 0) add_ms = *std::max_element(all.begin(), all.end());
  });
  // 3 GB/s for all four ranks together (machines/small.json).
  const auto bytes = static_cast<double>(Host::bytes_added(data.shape(), 4, kEntries));
  EXPECT_GT(add_ms, 4 * bytes / 3e6);
  EXPECT_LT(add_ms, 4.1 * bytes / 3e6);
}

// ---- The modelled host ----------------------------------------------------------------------------------

TEST_F(OnVirtualGpus, HostWorkTakesTheTimeOfTheHostsMemory) {
  const double before = vgpu::host_time_ms();
  vgpu::host_work(3'000'000);  // at 3 GB/s
  EXPECT_NEAR(vgpu::host_time_ms() - before, 1, 1e-9);
  vgpu::host_work(0);
  EXPECT_NEAR(vgpu::host_time_ms() - before, 1, 1e-9);
}

TEST_F(OnVirtualGpus, HostThreadsShareTheHostsMemory) {
  std::vector<double> ends(4);
  vgpu::run_host_threads(4, [&](int thread) {
    vgpu::host_work(3'000'000);
    ends[static_cast<std::size_t>(thread)] = vgpu::host_time_ms();
  });
  std::sort(ends.begin(), ends.end());
  for (std::size_t i = 1; i < ends.size(); ++i) EXPECT_NEAR(ends[i] - ends[i - 1], 1, 1e-9);
}

TEST(Coalesce, ABadIndexIsForgottenByTheNextCall) {
  run_ranks(1, [](Rank& rank) {
    Coalesce<std::int32_t, float> coalesce(rank, {10, 1, 4});
    const DeviceBuffer<float> values(rank.device(), 3);
    const DeviceBuffer<std::int32_t> indices(rank.device(), 3);
    CUDA_CHECK(cudaMemset(values.data(), 0, values.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto is_bad = [&](const std::vector<std::int32_t>& rows) {
      if (!rows.empty())
        CUDA_CHECK(cudaMemcpy(indices.data(), rows.data(), rows.size() * sizeof(std::int32_t),
                              cudaMemcpyHostToDevice));
      coalesce.run(indices.data(), values.data(), static_cast<std::int64_t>(rows.size()), rank.stream());
      return coalesce.bad_index();
    };
    EXPECT_FALSE(is_bad({0, 9, 0}));
    EXPECT_TRUE(is_bad({0, 10, 0}));
    EXPECT_FALSE(is_bad({})) << "of a call without entries";
    EXPECT_TRUE(is_bad({-1}));
    EXPECT_FALSE(is_bad({0, 9}));
  });
}

// The ranks' values differ, so that a rank that adds its own buffer several times fails.
TEST(TransportValues, AreOthersOnEachRankAndAtNeighbouringPlaces) {
  for (std::int64_t i = 0; i < 40; ++i) {
    EXPECT_NE(transport_value(i, 0), transport_value(i + 1, 0));
    for (int rank = 1; rank < 16; ++rank) EXPECT_NE(transport_value(i, 0), transport_value(i, rank)) << rank;
  }
  EXPECT_NE(transport_sum(0, 2), transport_sum(1, 2));
}

// ---- Far rows --------------------------------------------------------------------------------------------

/// Two tables with rows far apart, one for a kernel's reads and one for its writes.
struct FarTables {
  DeviceBuffer<FarElement> from{0, kFarElements}, to{0, kFarElements};
};

TEST_F(FarRows, SumsAreReadAndWrittenIn64Bits) {
  const FarTables tables;
  const DeviceBuffer<std::int32_t> sorted(0, 2 * kFarRows), begins(0, kFarRows), lengths(0, kFarRows),
      count(0, 1);
  put(count, 0, {static_cast<std::int32_t>(kFarRows)});
  for (const std::int64_t row :
       rows_of_the_block()) {  // its two entries: one from the other end, one from here
    put(begins, row, {static_cast<std::int32_t>(2 * row)});
    put(lengths, row, {2});
    put(sorted, 2 * row, {static_cast<std::int32_t>(opposite(row)), static_cast<std::int32_t>(row)});
    for (const std::int64_t entry : {row, opposite(row)}) put_row(tables.from, entry, far_values(entry));
  }
  run_block(kFarBlock, [&] {
    sum_entries<<<kFarGrid, kBlockThreads>>>(tables.from.data(), sorted.data(), begins.data(), lengths.data(),
                                             count.data(), kFarFeatures, tables.to.data());
  });
  for (const std::int64_t row : rows_of_the_block()) {
    std::vector<FarElement> sum = far_values(row);
    const std::vector<FarElement> other = far_values(opposite(row));
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = from_float<FarElement>(static_cast<float>(sum[i]) + static_cast<float>(other[i]));
    expect_row(tables.to, row, sum);
  }
}

TEST_F(FarRows, AreScatteredAndGatheredIn64Bits) {
  const FarTables tables;
  const DeviceBuffer<std::int32_t> indices(0, kFarRows);
  for (const std::int64_t row : rows_of_the_block()) {
    put(indices, row, {static_cast<std::int32_t>(opposite(row))});
    put_row(tables.from, row, far_values(row));
  }
  const SparseRows<std::int32_t, FarElement> local{indices.data(), tables.from.data(), kFarRows};
  run_block(kFarBlock,
            [&] { write_rows<<<kFarGrid, kBlockThreads>>>(local, kFarFeatures, tables.to.data()); });
  for (const std::int64_t row : rows_of_the_block()) expect_row(tables.to, opposite(row), far_values(row));

  const DeviceBuffer<FarElement> back(0, kFarElements);
  run_block(kFarBlock, [&] {
    read_rows<<<kFarGrid, kBlockThreads>>>(tables.to.data(), indices.data(), kFarRows, kFarFeatures,
                                           back.data());
  });
  for (const std::int64_t row : rows_of_the_block()) expect_row(back, row, far_values(row));
}

TEST_F(FarRows, AreLookedThroughIn64Bits) {
  const DeviceBuffer<FarElement> table(0, kFarElements);
  const DeviceBuffer<char> flags(0, kFarRows);
  const std::int64_t block_rows = kBlockThreads / kWarp, all_warps = kFarGrid * block_rows;
  const auto rows_of = [&](std::int64_t warp) { return stride(warp, all_warps, kFarRows / all_warps + 1); };
  // Rows that are 2^31 or 2^32 elements apart have different flags.
  const auto is_there = [&](std::int64_t row) { return (row / all_warps + row % block_rows) % 3 == 0; };
  for (std::int64_t warp = 0; warp < block_rows; ++warp) {
    for (const std::int64_t row : rows_of(warp)) {
      std::vector<FarElement> values(kFarFeatures, from_float<FarElement>(0));
      if (is_there(row)) values.back() = from_float<FarElement>(1);
      put_row(table, row, values);
    }
  }
  run_block(0, [&] {
    flag_nonzero_rows<<<kFarGrid, kBlockThreads>>>(table.data(), kFarRows, kFarFeatures, flags.data());
  });
  for (std::int64_t warp = 0; warp < block_rows; ++warp) {
    for (const std::int64_t row : rows_of(warp)) EXPECT_EQ(at(flags, row), is_there(row) ? 1 : 0) << row;
  }
}

// A table that is not filled: only its size and that of the cost card are checked.
TEST_F(FarRows, ADenseTableHasRoomForAllOfThem) {
  run_ranks(1, [](Rank& rank) {
    const SparseShape shape{kFarRows, kFarFeatures, 1};
    std::size_t before = 0, after = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&before, &total));
    const DenseAllReduce<std::int32_t, FarElement> dense(rank, shape);
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    const auto bytes = static_cast<std::size_t>(dense.cost(shape, 1).memory);
    EXPECT_EQ(bytes, kFarElements * sizeof(FarElement));
    EXPECT_GE(before - after, bytes);
    EXPECT_LT(before - after, bytes + bytes / 100);
  });
}

// Virtual GPUs' memory is the host's, which may be too small.
TEST_F(FarRows, AreAddedByTheHostIn64Bits) {
  const FarTables tables;
  std::vector<MergedRow> rows;
  for (const std::int64_t row : rows_of_the_block()) {
    put_row(tables.from, row, far_values(row));
    put_row(tables.to, opposite(row), far_values(opposite(row)));
    rows.push_back({row, -1});
    rows.push_back({-1, opposite(row)});
    rows.push_back({row, opposite(row)});
  }
  std::vector<FarElement> out(rows.size() * kFarFeatures);
  add_rows(rows, kFarFeatures, tables.from.data(), tables.to.data(), out.data());
  auto found = out.begin();
  for (const MergedRow& row : rows) {
    std::vector<FarElement> sum = far_values(row.left < 0 ? row.right : row.left);
    const std::vector<FarElement> other = far_values(row.right < 0 ? row.left : row.right);
    for (std::size_t i = 0; row.left >= 0 && row.right >= 0 && i < sum.size(); ++i)
      sum[i] = from_float<FarElement>(static_cast<float>(sum[i]) + static_cast<float>(other[i]));
    EXPECT_TRUE(same_bits(sum, {found, found + kFarFeatures})) << row.left << " and " << row.right;
    found += kFarFeatures;
  }
}

}  // namespace
}  // namespace overlap::sparse_baselines
