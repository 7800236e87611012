// Chapter 21 on any GPUs: every element right, for all types, sizes and numbers of ranks; call after call, in
// graphs, and beside other kernels that wait.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "21_small_all_reduce/add_and_normalise.cuh"
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "dense_run.hpp"
#include "in_company.hpp"
#include "overlap/bench/device_data.hpp"
#include "overlap/gpu/graph.hpp"

namespace overlap::small_all_reduce {
namespace {

// ---- All-reduces alone ---------------------------------------------------------------------------------

/// Summands whose sums are exact in all types, and differ from call to call; -0.0 among them.
template <Floating T>
std::vector<T> summands(int rank, std::int64_t elements, int call) {
  std::vector<T> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto number = static_cast<int>((i * 7 + static_cast<std::size_t>(rank * 13 + call * 5)) % 9);
    values[i] = from_double<T>(number == 8 ? -0.0 : number - 3);
  }
  return values;
}

template <Floating T>
std::vector<double> right_sums(int ranks, std::int64_t elements, int call) {
  std::vector<double> sums(static_cast<std::size_t>(elements), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<T> values = summands<T>(rank, elements, call);
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += value_of(values[i]);
  }
  return sums;
}

/// x and sum of a rank, with elements behind the sum that must stay as they are. `offset`: elements by which
/// both lie beside an address that vectors would need.
template <Floating T>
class Message {
 public:
  static constexpr std::size_t kBehind = 20;

  Message(Rank& rank, std::int64_t elements, std::size_t offset = 0)
      : rank_(rank),
        elements_(elements),
        offset_(offset),
        x_(rank.device(), static_cast<std::size_t>(elements) + offset),
        sum_(rank.device(), static_cast<std::size_t>(elements) + offset + kBehind) {}

  const T* x() const { return x_.data() + offset_; }
  T* sum() const { return sum_.data() + offset_; }

  void write(int call) {
    call_ = call;
    const std::vector<T> values = summands<T>(rank_.id(), elements_, call);
    CUDA_CHECK(cudaMemcpyAsync(x_.data() + offset_, values.data(), values.size() * sizeof(T),
                               cudaMemcpyHostToDevice, rank_.stream()));
    fill_with_nan(rank_, sum_);
  }
  void expect_right(const std::string& what) {
    const std::vector<T> found = download(rank_, sum_.data(), static_cast<std::int64_t>(sum_.size()));
    const std::vector<double> right = right_sums<T>(rank_.size(), elements_, call_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t at = i - offset_;
      if (i >= offset_ && at < right.size()) {
        ASSERT_EQ(value_of(found[i]), right[at]) << what << ": element " << at << " of " << right.size();
      } else {
        ASSERT_TRUE(is_nan(found[i])) << what << ": something was written " << at << " elements from the sum";
      }
    }
  }

 private:
  Rank& rank_;
  std::int64_t elements_;
  std::size_t offset_;
  int call_ = 0;
  DeviceBuffer<T> x_, sum_;
};

template <typename AllReduce, Floating T>
void expect_sums(int ranks, const std::vector<std::int64_t>& lengths, int calls, std::size_t offset = 0) {
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    for (const std::int64_t elements : lengths) {
      AllReduce all_reduce(rank, elements);
      std::vector<std::unique_ptr<Message<T>>> messages;
      for (int call = 0; call < calls; ++call) {
        messages.push_back(std::make_unique<Message<T>>(rank, elements, offset));
        messages.back()->write(call);
      }
      rank.barrier();
      for (const auto& message : messages) all_reduce.run(message->x(), message->sum(), rank.stream());
      rank.synchronize(rank.stream());
      rank.barrier();
      for (int call = 0; call < calls; ++call)
        messages[static_cast<std::size_t>(call)]->expect_right("call " + std::to_string(call));
    }
  });
}

/// Less than a vector, no multiple of one, of a block of words and more.
const std::vector<std::int64_t> kLengths = {1, 2, 3, 7, 8, 9, 31, 257, 1500};

class Ranks : public testing::TestWithParam<int> {
 protected:
  template <Floating T>
  void expect_all_right(const std::vector<std::int64_t>& lengths, int calls, std::size_t offset = 0) {
    expect_sums<OneShot<T, Reuse::kExitBarrier>, T>(GetParam(), lengths, calls, offset);
    expect_sums<OneShot<T>, T>(GetParam(), lengths, calls, offset);
    expect_sums<TwoShot<T>, T>(GetParam(), lengths, calls, offset);
    expect_sums<FlagInData<T>, T>(GetParam(), lengths, calls, offset);
    expect_sums<WordIsFlag<T>, T>(GetParam(), lengths, calls, offset);
  }
};

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

TEST_P(Ranks, CallsThatFollowEachOtherAtOnce) { expect_all_right<__half>({1, 300}, calls_at_once(13)); }

TEST_P(Ranks, NumbersOfCallsThatOverflow) {
  const WordsThatOverflow soon;
  expect_all_right<float>({5, 700}, 9);
}

/// Sums of normals in which the order of the summands shows: the same bits on all ranks, and as added in the
/// order of the ranks.
template <typename AllReduce>
void expect_the_order_of_ranks(int ranks) {
  constexpr std::int64_t kElements = 1000;
  const auto value = [](int rank, std::int64_t i) {
    return static_cast<float>(std::sin(static_cast<double>(i * 31 + rank * 7 + 1)) * std::pow(10, rank % 3));
  };
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    AllReduce all_reduce(rank, kElements);
    const DeviceBuffer<float> x(rank.device(), kElements), sum(rank.device(), kElements);
    std::vector<float> own, right(kElements, -0.0F);
    for (std::int64_t i = 0; i < kElements; ++i) own.push_back(value(rank.id(), i));
    for (int other = 0; other < ranks; ++other) {
      for (std::int64_t i = 0; i < kElements; ++i) right[static_cast<std::size_t>(i)] += value(other, i);
    }
    upload(rank, own, x);
    rank.barrier();
    all_reduce.run(x.data(), sum.data(), rank.stream());
    const std::vector<float> found = download(rank, sum.data(), kElements);
    EXPECT_EQ(std::memcmp(found.data(), right.data(), sizeof(float) * kElements), 0);
    rank.barrier();
  });
}

TEST_P(Ranks, SumsAreAddedInTheOrderOfTheRanks) {
  expect_the_order_of_ranks<OneShot<float>>(GetParam());
  expect_the_order_of_ranks<TwoShot<float>>(GetParam());
  expect_the_order_of_ranks<FlagInData<float>>(GetParam());
  expect_the_order_of_ranks<WordIsFlag<float>>(GetParam());
}

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

// ---- Behind a product ----------------------------------------------------------------------------------

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

// ---- What cannot be ------------------------------------------------------------------------------------

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
  // Parts of one vector on ranks 0 to 2: two go to the others, the own sum to three.
  EXPECT_EQ(TwoShot<__half>::cost(20, 4),
            (Cost{.bytes_out = 5 * 16, .bytes_in = 5 * 16, .launches = 1, .memory = 4 * 4 * 16}));
}

}  // namespace
}  // namespace overlap::small_all_reduce
