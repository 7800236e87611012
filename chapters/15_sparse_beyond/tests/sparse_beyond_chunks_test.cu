// Chapter 15's experiment on any GPUs: an exchange in chunks gives the same bits as one at once; also if
// values are written after the plan, chunk by chunk.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "15_sparse_beyond/experiments/chunked_all_reduce.cuh"
#include "15_sparse_beyond/experiments/passes.cuh"
#include "15_sparse_beyond/range_owners.cuh"

#include "sparse_version_suite.hpp"

namespace overlap::sparse_beyond {
namespace {

const bool kChunked = test_sums<VersionOf<ChunkedAllReduce>>("Chunked", "Sums");

/// The values of a result on this rank.
template <typename T, typename Algorithm>
std::vector<T> values_of(Rank& rank, Algorithm& algorithm, const DeviceGradient<std::int32_t, T>& gradient,
                         std::int64_t features) {
  const auto result = algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
  rank.synchronize(rank.stream());
  return on_host(result.values, result.count * features);
}

/// In any number of chunks, the bits of range owners: sums of real numbers show any other order.
template <typename T>
void expect_bits_of_the_lesson(int ranks) {
  for (const RowPattern pattern : {RowPattern::kUniform, RowPattern::kZipf, RowPattern::kUneven}) {
    const SparseData data({90, 5, 40}, ranks, pattern, 30, 3);
    run_ranks(ranks, [&](Rank& rank) {
      const DeviceGradient<std::int32_t, T> gradient(rank, data, SparseValues::kReal);
      RangeOwnersAllReduce<std::int32_t, T> lesson(rank, data.shape());
      const std::vector<T> expected = values_of<T>(rank, lesson, gradient, 5);
      EXPECT_FALSE(expected.empty());
      for (const int chunks : {1, 3, kChunks, 97}) {  // also more of them than rows
        rank.barrier();
        ChunkedAllReduce<std::int32_t, T> chunked(rank, data.shape(), chunks);
        EXPECT_TRUE(same_bits(values_of<T>(rank, chunked, gradient, 5), expected)) << chunks << " chunks";
        EXPECT_EQ(chunked.host_waits(), 1);
      }
      rank.barrier();
    });
  }
}

TEST_P(OnRanks, ChunksHaveTheBitsOfTheLesson) {
  expect_bits_of_the_lesson<float>(GetParam());
  expect_bits_of_the_lesson<__nv_bfloat16>(GetParam());
}

// Steps that follow each other at once, of two gradients: all values are written behind the plan, by parts of
// the table, over those of the step before.
TEST_P(OnRanks, ChunksWaitForTheirPartOfTheBackwardPass) {
  const SparseData data[] = {{{80, 7, 25}, GetParam(), RowPattern::kUniform, 40, 3},
                             {{80, 7, 25}, GetParam(), RowPattern::kUneven, 0, 4}};
  run_ranks(GetParam(), [&](Rank& rank) {
    const DeviceGradient<std::int32_t, float> gradients[] = {{rank, data[0], SparseValues::kExact},
                                                             {rank, data[1], SparseValues::kExact}};
    const DeviceBuffer<float> values(rank.device(), 7 * (25 + 40));
    CUDA_CHECK(cudaMemsetAsync(values.data(), 0xFF, values.bytes(), rank.stream()));
    Passes<std::int32_t, float> passes(rank, data[0].shape());
    ChunkedAllReduce<std::int32_t, float> sum(rank, data[0].shape());
    const int steps = calls_at_once(10);
    for (int step = 0; step < steps; ++step) {
      const auto& gradient = gradients[step % 2];
      sum.plan(gradient.indices(), gradient.count(), rank.stream());
      passes.forward(kChunks, rank.stream());
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        passes.backward(chunk, sum.table_rows(chunk), gradient.indices(), gradient.values(), gradient.count(),
                        values.data(), rank.stream());
        sum.ready(chunk, rank.stream());
      }
      const auto result = sum.reduce(values.data(), rank.stream());
      if (step + 2 < steps) continue;
      rank.synchronize(rank.stream());
      EXPECT_EQ(difference(data[step % 2], SparseValues::kExact, result), "")
          << "step " << step << " of rank " << rank.id();
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace overlap::sparse_beyond
