// Chapter 21 on any GPUs: every element right, for all types, sizes and numbers of ranks; in graphs, and
// beside other kernels that wait.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "21_small_all_reduce/add_and_normalise.cuh"
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "all_reduce_run.hpp"
#include "dense_run.hpp"
#include "in_company.hpp"
#include "overlap/bench/device_data.hpp"
#include "overlap/gpu/graph.hpp"

namespace overlap::small_all_reduce {
namespace {

// ---- All-reduces alone ---------------------------------------------------------------------------------

/// Less than a vector, no multiple of a vector, less and more than a block of words.
const std::vector<std::int64_t> kLengths = {1, 2, 3, 7, 8, 9, 31, 257, 1500};

class Ranks : public AllReduces {};
INSTANTIATE_TEST_SUITE_P(Chapter21, Ranks, testing::Values(1, 2, 3, 4, 8));

TEST_P(Ranks, AllLengthsInF16) { expect_all_right<__half>(kLengths, 2); }

TEST_P(Ranks, AllLengthsInBf16) { expect_all_right<__nv_bfloat16>(kLengths, 2); }

TEST_P(Ranks, AllLengthsInF32) { expect_all_right<float>(kLengths, 2); }

TEST(SmallAllReduce, SeveralBlocks) {
  expect_sums<OneShot<__half>, __half>(3, {20001}, 2);
  expect_sums<TwoShot<__half>, __half>(3, {50001}, 2);
  expect_sums<FlagInData<float>, float>(3, {4099}, 2);
  expect_sums<WordIsFlag<float>, float>(3, {20001}, 4);
}

TEST_P(Ranks, ElementsWhereNoVectorBegins) { expect_all_right<__half>({1, 9, 300}, 1, 3); }

// ---- In graphs -----------------------------------------------------------------------------------------

/// Calls of the host and replays of a graph of three calls in turns: the GPU counts all of them.
template <typename AllReduce>
void expect_right_in_graphs(int ranks, int replays) {
  constexpr std::int64_t kElements = 300;
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    AllReduce all_reduce(rank, kElements);
    Message<__half> message(rank, kElements);
    const Graph graph = Graph::capture(rank.stream(), [&] {
      for (int i = 0; i < 3; ++i) all_reduce.run(message.x(), message.sum(), rank.stream());
    });
    for (int round = 0; round < 4; ++round) {
      message.write(round);
      rank.barrier();
      for (int i = 0; i < replays; ++i) graph.launch(rank.stream());
      if (round % 2 == 1) all_reduce.run(message.x(), message.sum(), rank.stream());
      rank.synchronize(rank.stream());
      message.expect_right("round " + std::to_string(round));
      rank.barrier();
    }
  });
}

TEST_P(Ranks, ReplaysOfAGraphCountAsCalls) {
  const int replays = calls_at_once(12) > 12 ? 250 : 3;  // 1,000 on real GPUs
  expect_right_in_graphs<OneShot<__half, Reuse::kExitBarrier>>(GetParam(), replays);
  expect_right_in_graphs<OneShot<__half>>(GetParam(), replays);
  expect_right_in_graphs<TwoShot<__half>>(GetParam(), replays);
  expect_right_in_graphs<FlagInData<__half>>(GetParam(), replays);
  expect_right_in_graphs<WordIsFlag<__half>>(GetParam(), replays);
}

// ---- Behind a GEMM -------------------------------------------------------------------------------------

template <Floating T, typename AllReduce>
void expect_products(int ranks, int calls = 1) {
  const std::vector<MatmulShape> shapes = {{1, 129, 64}, {5, 3, 7}, {33, 37, 29}};
  using Layer = GemmThen<T, AllReduce>;
  expect_runs_right(ranks, shapes, calls, run_dense_all<Layer, AllReduceProblem<T>>(ranks, shapes, 1, calls),
                    [ranks](MatmulShape shape) { return ranks * shape.m * shape.n; });
}

TEST_P(Ranks, ProductsAndSumsOfThem) {
  expect_products<__half, OneShot<__half>>(GetParam());
  expect_products<__nv_bfloat16, TwoShot<__nv_bfloat16>>(GetParam());
  expect_products<float, FlagInData<float>>(GetParam(), 3);
  expect_products<__half, WordIsFlag<__half>>(GetParam(), 4);
}

class OnRanksOfNcclIn21 : public OnRanksOfNccl {};
INSTANTIATE_TEST_SUITE_P(Chapter21, OnRanksOfNcclIn21, testing::Values(1, 2, 3, 4, 8));
TEST_P(OnRanksOfNcclIn21, ProductsAndNcclsSums) {
  expect_products<__half, NcclAllReduce<__half>>(GetParam(), 2);
}

// ---- Beside other kernels that wait --------------------------------------------------------------------

/// GemmThen, whose all-reduce leaves multiprocessors to others.
template <typename AllReduce>
class GemmBeside {
 public:
  GemmBeside(Rank& rank, MatmulShape whole, int set_aside)
      : rank_(rank),
        product_{whole.m, whole.n, balanced_share(whole.k, rank.size(), rank.id()).size()},
        all_reduce_(rank, whole.m * whole.n, set_aside),
        partial_(rank.device(), static_cast<std::size_t>(whole.m * whole.n)) {}

  void run(const __half* a, const __half* b, __half* c, cudaStream_t stream) {
    matmul_row_major(rank_.cublas(), stream, product_, a, b, partial_.data());
    all_reduce_.run(partial_.data(), c, stream);
  }

 private:
  Rank& rank_;
  MatmulShape product_;
  AllReduce all_reduce_;
  DeviceBuffer<__half> partial_;
};

/// Enough elements for a block on each multiprocessor that is not set aside.
MatmulShape large() { return {16, backend::modelled_time() ? 2048 : 32768, 8}; }

template <typename AllReduce>
class InCompany : public testing::Test {};
using All = testing::Types<OneShot<__half, Reuse::kExitBarrier>, OneShot<__half>, TwoShot<__half>,
                           FlagInData<__half>, WordIsFlag<__half>>;
TYPED_TEST_SUITE(InCompany, All);

TYPED_TEST(InCompany, IsRightInOppositeOrderBesideNccl) {
  using Beside = GemmBeside<TypeParam>;
  run_or_skip([] {
    run_in_company<Beside, AllReduceProblem<__half>>(
        2, large(), [](Rank& rank) { return nccl_of(rank, kNcclBlocks); }, kNcclBlocks);
  });
}

TYPED_TEST(InCompany, TwoAreRightInOppositeOrder) {
  using Beside = GemmBeside<TypeParam>;
  using Problem = AllReduceProblem<__half>;
  int multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const int half = (multiprocessors + 1) / 2;
  run_or_skip([half] {
    run_in_company<Beside, Problem>(
        2, large(), [half](Rank& rank) { return another<Beside, Problem>(rank, large(), half); }, half);
  });
}

// ---- With residual and norm ----------------------------------------------------------------------------

template <Floating T>
void expect_norms(int ranks, std::int64_t rows, std::int64_t n, int calls) {
  constexpr float kEpsilon = 1e-5F;
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    AddAndNormalise<T> normalise(rank, rows, n, kEpsilon);
    Message<T> message(rank, rows * n);
    const auto elements = static_cast<std::size_t>(rows * n);
    const DeviceBuffer<T> gain(rank.device(), static_cast<std::size_t>(n)), residual(rank.device(), elements),
        out(rank.device(), elements);
    std::vector<T> gains;
    for (std::int64_t i = 0; i < n; ++i) gains.push_back(from_double<T>(1 + static_cast<double>(i % 5) / 4));
    upload(rank, gains, gain);
    for (int call = 0; call < calls; ++call) {
      message.write(call);
      const std::vector<T> before = summands<T>(99, rows * n, call);
      upload(rank, before, residual);
      fill_with_nan(rank, out);
      rank.barrier();
      normalise.run(message.x(), gain.data(), residual.data(), out.data(), rank.stream());
      const std::vector<T> stream = download(rank, residual.data(), rows * n),
                           found = download(rank, out.data(), rows * n);
      const std::vector<double> sums = right_sums<T>(ranks, rows * n, call);
      for (std::int64_t row = 0; row < rows; ++row) {
        double squares = 0;
        for (std::int64_t i = row * n; i < (row + 1) * n; ++i) {
          const auto at = static_cast<std::size_t>(i);
          ASSERT_EQ(value_of(stream[at]), sums[at] + value_of(before[at])) << "residual " << i;
          squares += value_of(stream[at]) * value_of(stream[at]);  // exact
        }
        const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + double{kEpsilon});
        // Rounding to T once, and six roundings in f32 before.
        const double u = std::same_as<T, float> ? 0 : std::same_as<T, __half> ? 0x1p-11 : 0x1p-8;
        for (std::int64_t i = row * n; i < (row + 1) * n; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double right =
              value_of(gains[static_cast<std::size_t>(i - row * n)]) * value_of(stream[at]) * scale;
          ASSERT_NEAR(value_of(found[at]), right, std::abs(right) * (u + 0x1p-20))
              << "row " << row << ", element " << i - row * n;
        }
      }
      rank.barrier();
    }
  });
}

TEST_P(Ranks, ResidualAndNorm) {
  expect_norms<__half>(GetParam(), 1, 8, 4);
  expect_norms<__nv_bfloat16>(GetParam(), 3, 1000, 2);
  expect_norms<float>(GetParam(), 5, 4, 2);
  expect_norms<__half>(GetParam(), 70, 16, 2);                  // more rows than blocks
  expect_norms<float>(GetParam(), 2, 4 * kNormThreads + 4, 1);  // more vectors in a row than threads
}

// ---- Unsupported ---------------------------------------------------------------------------------------

template <typename AllReduce>
void expect_skipped(int ranks, std::int64_t elements) {
  EXPECT_THROW(run_ranks(ranks, [&](Rank& rank) { const AllReduce longer(rank, elements); }), Skip);
}

TEST(SmallAllReduce, LongMessagesTakeNoFlagsAlong) {
  expect_skipped<FlagInData<__half>>(2, kMaxFlaggedBytes / 2 + 1);
  expect_skipped<WordIsFlag<__half>>(3, kMaxFlaggedBytes / 4 + 1);
}

TEST(SmallAllReduce, RowsOfANormAreWholeVectors) {
  EXPECT_THROW(run_ranks(1, [](Rank& rank) { const AddAndNormalise<__half> uneven(rank, 1, 12, 0.0F); }),
               Skip);
  EXPECT_THROW(run_ranks(1, [](Rank& rank) { const AddAndNormalise<__half> wide(rank, 1, 16392, 0.0F); }),
               Skip);
}

TEST(SmallAllReduceCost, CountsWhatMoves) {
  // 20 elements of f16: three vectors, ten words.
  EXPECT_EQ(OneShot<__half>::cost(20, 4),
            (Cost{.bytes_out = 3 * 48, .bytes_in = 3 * 48, .launches = 1, .memory = 2 * 48}));
  EXPECT_EQ(FlagInData<__half>::cost(20, 4),
            (Cost{.bytes_out = 3 * 80, .bytes_in = 3 * 80, .launches = 1, .memory = 2 * 4 * 80}));
  EXPECT_EQ(WordIsFlag<__half>::cost(20, 4),
            (Cost{.bytes_out = 3 * 48, .bytes_in = 3 * 48, .launches = 1, .memory = 3 * 4 * 48}));
  // Ranks 0 to 2 have a part of one vector each: rank 0 sends the other two parts, and its sum three times.
  EXPECT_EQ(TwoShot<__half>::cost(20, 4),
            (Cost{.bytes_out = 5 * 16, .bytes_in = 5 * 16, .launches = 1, .memory = 4 * 4 * 16}));
}

}  // namespace
}  // namespace overlap::small_all_reduce
