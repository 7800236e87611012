// Chapter 09 on any GPUs: the code that all versions share, with version 1 as the example, and version 1
// itself.
#include "09_sparse_v1_nonzero/nonzero.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "sparse_search_tests.hpp"
#include "sparse_version_suite.hpp"

namespace overlap::sparse_nonzero {
namespace {

const bool kNonzero = test_sparse_version<VersionOf<NonzeroAllReduce>>("Nonzero");
INSTANTIATE_TEST_SUITE_P(Nonzero, OnRanks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(OnRanks, MakesTheHostWaitAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<NonzeroAllReduce>(GetParam());
}

class OnTwoRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (!enough_gpus(2)) GTEST_SKIP() << "NCCL wants a GPU for each of 2 ranks";
  }
};

TEST_F(OnTwoRanks, IsRightWithSizesAroundABlock) {
  expect_right_with_sizes_around<NonzeroAllReduce, std::int32_t, float>(2, kBlockThreads);
}

// Sorts use only the bits that row numbers need: tests sizes just below and at those that need one more bit,
// and all of the type's bits. Padding must always be behind the last row.
TEST_F(OnTwoRanks, IsRightInTablesOfAnySize) {
  const auto cases = [](const std::vector<std::int64_t>& tables) {
    std::vector<SparseCase> of_each;
    for (const std::int64_t rows : tables) {
      const Entries entries = {{rows - 1, 0, rows / 2, rows - 1}, {rows - 1, rows / 3}};
      of_each.push_back({std::to_string(rows) + " rows", {SparseData({rows, 3, 3}, entries, 2)}});
    }
    return of_each;
  };
  std::vector<std::int64_t> tables = {1, 2, 3, 4, 255, 256, 257, 65535, 65536, 2147483647};
  expect_sums<NonzeroAllReduce, std::int32_t, float>(cases(tables));
  for (const std::int64_t rows : {2147483648LL, 2147483649LL, 3000000007LL, 4294967296LL, 4294967297LL,
                                  1LL << 62, std::numeric_limits<long long>::max()})
    tables.push_back(rows);
  expect_sums<NonzeroAllReduce, std::int64_t, float>(cases(tables));
}

TEST_F(OnTwoRanks, ATableIsNoLongerThanItsIndicesCount) {
  EXPECT_THROW(run_ranks(2,
                         [](Rank& rank) {
                           NonzeroAllReduce<std::int32_t, float>(rank, {2147483648LL, 1, 1});
                         }),
               UsageError);
}

/// Two ranks, each with its own kind of object: both must be refused with this sentence, and a valid call on
/// the same GPUs must then succeed.
template <typename OfRank0, typename OfRank1, typename T0, typename T1, typename I0, typename I1>
void expect_disagreement(SparseShape shape0, SparseShape shape1, const std::string& sentence) {
  std::string refusals[2];
  run_ranks(2, [&](Rank& rank) {
    const auto run = [&](auto& algorithm, auto index, auto value, SparseShape shape) {
      using Index = decltype(index);
      using T = decltype(value);
      const SparseData data({std::min(shape0.rows, shape1.rows), shape.features, 4}, 2, RowPattern::kUneven,
                            1, 8);
      const DeviceGradient<Index, T> gradient(rank, data, SparseValues::kExact);
      refusals[rank.id()] =
          refusal_of(algorithm, static_cast<const Index*>(gradient.indices()),
                     static_cast<const T*>(gradient.values()), gradient.count(), rank.stream());
      rank.synchronize(rank.stream());
      rank.barrier();
    };
    if (rank.id() == 0) {
      OfRank0 algorithm(rank, shape0);
      run(algorithm, I0{}, T0{}, shape0);
    } else {
      OfRank1 algorithm(rank, shape1);
      run(algorithm, I1{}, T1{}, shape1);
    }
    // The ranks' communicator still works.
    NonzeroAllReduce<std::int32_t, float> algorithm(rank, {40, 3, 5});
    expect_sum<std::int32_t, float>(rank, algorithm, SparseData({40, 3, 5}, 2, RowPattern::kUniform, 1, 5),
                                    "after a disagreement");
  });
  EXPECT_EQ(refusals[0], sentence);
  EXPECT_EQ(refusals[1], sentence);
}

TEST_F(OnTwoRanks, RefusesTablesRowsAndTypesThatDiffer) {
  using Int = std::int32_t;
  using Long = std::int64_t;
  using Usual = NonzeroAllReduce<Int, float>;
  expect_disagreement<Usual, Usual, float, float, Int, Int>(
      {40, 3, 5}, {41, 3, 5}, "rank 1 has a table of 41 rows, and rank 0 a table of 40 rows");
  expect_disagreement<Usual, Usual, float, float, Int, Int>(
      {40, 3, 5}, {40, 2, 5}, "rank 1 has rows of 2 elements, and rank 0 rows of 3 elements");
  expect_disagreement<Usual, NonzeroAllReduce<Int, __half>, float, __half, Int, Int>(
      {40, 3, 5}, {40, 3, 5},
      "rank 1 has f16 elements and int32 indices, and rank 0 f32 elements and int32 indices");
  expect_disagreement<NonzeroAllReduce<Long, float>, Usual, float, float, Long, Int>(
      {40, 3, 5}, {40, 3, 5},
      "rank 1 has f32 elements and int32 indices, and rank 0 f32 elements and int64 indices");
}

TEST_F(OnTwoRanks, RefusesNumbersOfEntriesThatCannotBe) {
  for (const std::int64_t entries : {std::int64_t{-1}, std::int64_t{1} << 31, std::int64_t{1} << 40}) {
    run_ranks(2, [&](Rank& rank) {
      NonzeroAllReduce<std::int32_t, float> algorithm(rank, {40, 3, 5});
      const std::int32_t* none = nullptr;
      const float* nothing = nullptr;
      EXPECT_EQ(refusal_of(algorithm, none, nothing, rank.id() == 1 ? entries : 0, rank.stream()),
                "rank 1 has less than 0 or more than 2^31 - 1 entries");
      expect_sum<std::int32_t, float>(rank, algorithm, SparseData({40, 3, 5}, 2, RowPattern::kUniform, 1, 5),
                                      "after a refusal");
    });
  }
}

// ---- The search alone -------------------------------------------------------------------------------------

TEST(NonzeroSearch, FindsEachRowThatIsThereAndNoOther) {
  run_ranks(1, [](Rank& rank) {
    const FrameAlone alone(rank);
    NonzeroSearch find(alone.frame);
    expect_all_places(rank, kBlockThreads, find, kAsInAnAllReduce);
    const int waits = alone.waits->count();
    expect_places<std::int32_t>(rank, {3, 5, 9}, {3, 4, 9}, find, kAsInAnAllReduce);
    EXPECT_EQ(alone.waits->count(), waits + 3) << "one for each row";
  });
}

// ---- What the frame does with versions that err -----------------------------------------------------------

/// Returns places shifted by so many behind the right ones.
template <int kShift>
struct FindsWrong {
  void operator()(RowList<std::int32_t> local, RowList<std::int32_t> global, std::int32_t* positions,
                  cudaStream_t stream) const {
    CUDA_CHECK(cudaStreamSynchronize(stream));  // on_host() does not wait for it
    const std::vector<std::int32_t> of_row = on_host(local.indices, local.count),
                                    all = on_host(global.indices, global.count);
    std::vector<std::int32_t> places;
    for (const std::int32_t row : of_row)
      places.push_back(static_cast<std::int32_t>(std::find(all.begin(), all.end(), row) - all.begin()) +
                       kShift);
    CUDA_CHECK(
        cudaMemcpy(positions, places.data(), places.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice));
  }
};

/// Finds the places in its first call only.
struct FindsOnce {
  void operator()(RowList<std::int32_t> local, RowList<std::int32_t> global, std::int32_t* positions,
                  cudaStream_t stream) {
    if (calls++ == 0) FindsWrong<0>()(local, global, positions, stream);
  }
  int calls = 0;
};

template <typename Find>
using With = SparseAllReduce<std::int32_t, float, Find>;

TEST_F(OnTwoRanks, RowsWithoutTheirPlaceAreCountedAndWrittenNowhere) {
  const SparseData data({40, 3, 5}, 2, RowPattern::kUneven, 1, 5);
  const auto lost_of = [&](auto& algorithm, Rank& rank) {
    const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kExact);
    const auto result = algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
    rank.synchronize(rank.stream());
    float sum = 0;
    for (const float value : on_host(result.values, result.count * 3)) sum += std::abs(value);
    rank.barrier();
    return std::pair(algorithm.lost_rows(rank.stream()), sum);
  };
  run_ranks(2, [&](Rank& rank) {
    const auto rows = static_cast<int>(data.local_rows(rank.id()).size());
    With<FindsWrong<0>> right(rank, data.shape());
    EXPECT_EQ(lost_of(right, rank).first, 0);
    for (int call = 1; call <= 2; ++call) {
      With<FindsWrong<1>> behind(rank, data.shape());
      const auto [lost, sum] = lost_of(behind, rank);
      EXPECT_EQ(lost, rows);
      EXPECT_EQ(sum, 0) << "zeros, not what was there before";
    }
    With<FindsWrong<-1000000>> below(rank, data.shape());
    EXPECT_EQ(lost_of(below, rank).first, rows);
    EXPECT_EQ(lost_of(below, rank).first, 2 * rows) << "of all calls";
    With<FindsOnce> forgets(rank, data.shape());
    EXPECT_EQ(lost_of(forgets, rank).first, 0);
    EXPECT_EQ(lost_of(forgets, rank).first, rows) << "the places of the call before do not count";
  });
}

/// Has a capacity of 3 rows for a rank and of 5 for all.
struct HasRoomForFew : FindsWrong<0> {
  void require_room(std::int64_t max_local, std::int64_t global) const {
    if (max_local > 3 || global > 5)
      throw SparseInputError(std::to_string(max_local) + " and " + std::to_string(global) + " rows");
  }
};

TEST_F(OnTwoRanks, AVersionRefusesWhatItHasNoRoomForOnAllRanksAlike) {
  const SparseData right({40, 2, 3}, {{4, 5}, {1, 4, 9}}, 1);
  run_ranks(2, [&](Rank& rank) {
    With<HasRoomForFew> algorithm(rank, {40, 2, 3});
    expect_sum<std::int32_t, float>(rank, algorithm, right, "within its room");
    const std::vector<std::int64_t> few = {7}, more = {4, 5, 6, 8}, other = {20, 21, 22},
                                    yet_other = {1, 2, 3};
    expect_refused<std::int32_t, float>(rank, algorithm, right.shape(), rank.id() == 0 ? few : more,
                                        "4 and 5 rows", right);
    expect_refused<std::int32_t, float>(rank, algorithm, right.shape(), rank.id() == 0 ? other : yet_other,
                                        "3 and 6 rows", right);
  });
}

// The place of a row times its features exceeds 2^31.
TEST(ScatterRows, ComputesPlacesIn64Bits) {
  constexpr std::int64_t position = 1'048'577, features = 2048;
  std::size_t available = 0, all = 0;
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMemGetInfo(&available, &all));
  constexpr std::size_t elements = (position + 1) * features;
  if (available < 2 * elements * sizeof(__half)) GTEST_SKIP() << "4.3 GB of GPU memory are needed";
  const DeviceBuffer<__half> values(0, elements), row(0, features);
  const DeviceBuffer<std::int32_t> global(0, position + 1), positions(0, 1);
  const DeviceBuffer<int> lost(0, 1);
  const std::int32_t place = position;
  const std::vector<__half> ones(features, from_float<__half>(1));
  CUDA_CHECK(cudaMemset(values.data(), 0, values.bytes()));
  CUDA_CHECK(cudaMemset(global.data(), 0, global.bytes()));
  CUDA_CHECK(cudaMemset(lost.data(), 0, lost.bytes()));
  CUDA_CHECK(cudaMemcpy(row.data(), ones.data(), row.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(positions.data(), &place, sizeof(place), cudaMemcpyHostToDevice));
  scatter_rows<<<1, kBlockThreads>>>(SparseRows<std::int32_t, __half>{global.data(), row.data(), 1},
                                     global.data(), position + 1, positions.data(), features, values.data(),
                                     lost.data());
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_TRUE(same_bits(on_host(values.data() + position * features, features), ones));
  EXPECT_EQ(on_host(lost.data(), 1)[0], 0);
}

// ---- Where it cannot run, and what it costs
// ----------------------------------------------------------------

TEST(NonzeroAllReduce, NeedsAGpuForEachRank) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  if (gpus >= 16) GTEST_SKIP() << "there are GPUs enough";
  EXPECT_THROW(run_ranks(gpus + 1,
                         [](Rank& rank) {
                           NonzeroAllReduce<std::int32_t, float>(rank, {8, 1, 1});
                         }),
               Skip);
}

TEST(NonzeroCost, IsThePagesCostCard) {
  // The article's workload, drawn evenly: 8 ranks, 50,000 rows each, of which 386,277 are different.
  const SparseCall call = {
      .ranks = 8, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 386'277};
  const Cost cost = NonzeroAllReduce<std::int32_t, float>::cost(call);
  EXPECT_EQ(cost.comparisons, 19'313'850'000);
  EXPECT_EQ(cost.launches, 100'001);
  EXPECT_EQ(cost.host_waits, 50'003);
  EXPECT_EQ(cost.memory, 3'476'493);
  EXPECT_EQ(cost.bytes_in, 5'539'212'860);
  EXPECT_EQ(cost.bytes_out, 5'539'412'860);
}

TEST(NonzeroCost, CountsWhatEachRankDoes) {
  const auto cost_of = [](int ranks, int rank, std::int64_t local, std::int64_t most, std::int64_t global) {
    return NonzeroAllReduce<std::int64_t, __half>::cost({ranks, rank, 3, local, most, global});
  };
  // No rank has a row: one exchange of records, in which each step of the ring sends and receives 6 numbers.
  EXPECT_EQ(cost_of(4, 2, 0, 0, 0),
            (Cost{.bytes_out = 2 * 3 * 6 * 8, .bytes_in = 2 * 3 * 6 * 8, .host_waits = 1}));
  // One rank alone sends nothing.
  EXPECT_EQ(cost_of(1, 0, 5, 5, 5),
            (Cost{.host_waits = 4 + 5, .launches = 11, .comparisons = 25, .memory = 5 * 9}));
  // A rank without rows finds nothing, but takes part in all collectives.
  const Cost none = cost_of(2, 1, 0, 7, 7);
  EXPECT_EQ(none.comparisons, 0);
  EXPECT_EQ(none.launches, 0);
  EXPECT_EQ(none.host_waits, 2);
  EXPECT_EQ(none.bytes_out, 2 * 6 * 8 + 7 * 8 + 21 * 2);     // records, its padded list, its share of the sum
  EXPECT_EQ(none.bytes_in, 2 * 6 * 8 + 8 + 7 * 8 + 21 * 2);  // records, the number, the list, the sum
}

}  // namespace
}  // namespace overlap::sparse_nonzero
