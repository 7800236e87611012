// Shared by the tests of chapters 17 and 20: GEMMs whose rows of A arrive in shards, each with its signal.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "17_gemm_on_signals/arrival_order.cuh"
#include "dense_run.hpp"
#include "late_rank.hpp"
#include "ownership.hpp"
#include "stopped_run.hpp"

namespace overlap {

/// k and each rank's share of n are multiples of 8. Fewer rows than ranks, rows of all ranks in one tile,
/// tiles across shards, shards that end with a tile; the last one with so many times 8 columns of a rank.
inline std::vector<MatmulShape> signalled_shapes(int ranks, int max_columns) {
  const std::int64_t n = 8 * ranks;
  return {{1, n, 8},        {ranks, n, 16},       {3 * ranks + 1, 2 * n, 72},
          {130, 9 * n, 64}, {64 * ranks, n, 136}, {257, max_columns * n, 24}};
}

/// `count` random ones with up to `most` rows.
inline std::vector<MatmulShape> random_signalled_shapes(int ranks, int count, int most, unsigned seed) {
  return random_shapes(count, seed, {most}, {std::max(1, 20 / ranks), 8 * ranks}, {20, 8});
}

/// The caller owns A, B and C again behind a call, with rows for all ranks and with two.
template <typename Algorithm, typename... More>
void expect_caller_owns_signalled(int ranks, More... more) {
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    for (const MatmulShape shape : {MatmulShape{150, 16 * ranks, 72}, MatmulShape{2, 8 * ranks, 8}})
      expect_caller_owns_matrices_on<Algorithm, GatherProblem<__half>>(rank, shape, more...);
  });
}

/// Calls that only gather, between calls that multiply; then calls with one late rank after the other.
template <typename Algorithm, typename... More>
void expect_transfers_alone_to_end(int ranks, MatmulShape whole, More... more) {
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    GatherProblem<__half> problem(rank, whole, 5);
    problem.fill_exact();
    problem.poison_result();
    Algorithm algorithm(rank, whole, more...);
    rank.barrier();
    for (int call = 0; call < 3; ++call) {
      algorithm.gather(problem.a(), rank.stream());
      algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    }
    rank.synchronize(rank.stream());
    rank.barrier();
    const Verification found = problem.compare_exact(false);
    EXPECT_TRUE(found.ok()) << describe(found);
    expect_all_wait_for_a_late_rank(rank,
                                    [&](cudaStream_t stream) { algorithm.gather(problem.a(), stream); });
  });
}

/// Calls without rows, columns or depth.
template <typename Algorithm, typename... More>
void expect_nothing_to_multiply_to_be_no_call(int ranks, More... more) {
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    const DeviceBuffer<__half> any(rank.device(), 1024);
    CUDA_CHECK(cudaMemset(any.data(), 0, any.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    for (const MatmulShape whole :
         {MatmulShape{40, 0, 8}, MatmulShape{0, 8 * ranks, 8}, MatmulShape{4, 8 * ranks, 0}}) {
      Algorithm algorithm(rank, whole, more...);
      rank.barrier();
      for (int call = 0; call < 3; ++call)
        algorithm.run(any.data(), any.data(), any.data() + 512, rank.stream());
      rank.synchronize(rank.stream());
      rank.barrier();
    }
  });
}

/// Kernels of the others wait for a shard that never comes. The next run is none the worse.
template <typename Algorithm, typename... More>
void expect_a_rank_that_throws_to_end_the_run(int ranks, More... more) {
  if (ranks == 1) GTEST_SKIP() << "nobody waits";
  const MatmulShape whole{130, 16 * ranks, 72};
  expect_stopped_run<Algorithm, GatherProblem<__half>>(ranks, ranks - 1, 1, whole, more...);
  expect_right<Algorithm, GatherProblem<__half>>(ranks, whole, 1, 1, more...);
}

/// An order takes each tile of 64 rows once, and none before tiles that wait for fewer arrivals.
/// `arrivals_before(first_row, end_row)`: arrivals until those rows have arrived.
template <typename Order, typename Arrivals>
void expect_tiles_as_rows_arrive(const Order& order, int rows, const Arrivals& arrivals_before) {
  std::set<std::pair<int, int>> seen;
  int last = 0;
  for (int i = 0; i < order.tiles(); ++i) {
    const tensor_core_gemm::TilePlace tile = order(i);
    ASSERT_TRUE(tile.m >= 0 && tile.m < order.tiling.along_m && tile.n >= 0 && tile.n < order.tiling.along_n);
    ASSERT_TRUE(seen.insert({tile.m, tile.n}).second) << i;
    const int arrivals = arrivals_before(64 * tile.m, std::min(64 * tile.m + 64, rows));
    ASSERT_GE(arrivals, last) << "an earlier tile waits for what this one does not need";
    last = arrivals;
  }
  ASSERT_EQ(static_cast<int>(seen.size()), order.tiling.tiles());
}

/// Tiles that all need own rows only: by columns of eight rows of tiles, as in chapter 16.
template <typename Order>
void expect_tiles_in_groups(const Order& order) {
  for (int i = 0; i < order.tiles(); ++i) {
    const tensor_core_gemm::TilePlace tile = order(i), expected = place_of(i, order.tiling, 8);
    ASSERT_TRUE(tile.m == expected.m && tile.n == expected.n) << i << ": " << tile.m << ", " << tile.n;
  }
}

}  // namespace overlap
