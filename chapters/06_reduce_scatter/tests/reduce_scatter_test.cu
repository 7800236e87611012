// Chapter 06 on any GPUs: right for every number of ranks, any sizes, all types, and call after call.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/experiments/errors.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "dense_run.hpp"
#include "late_rank.hpp"
#include "overlap/data/data.hpp"
#include "overlap/gpu/host_copy.hpp"

namespace overlap::reduce_scatter {
namespace {

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ReduceScatter, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, NcclIsRight) {
  expect_all_right<MultiplyThenScatter<__half>, ScatterProblem<__half>>(GetParam(), dense_shapes());
}

TEST_P(OnRanks, RotatingAccumulatorsAreRight) {
  expect_all_right<RotatingAccumulators<__half>, ScatterProblem<__half>>(GetParam(), dense_shapes());
  expect_all_right<RotatingAccumulators<__half, float>, ScatterProblem<__half>>(GetParam(), dense_shapes());
}

TEST_P(OnRanks, BothBeginningsAndBothWaysToPassAreRight) {
  const std::vector<MatmulShape> shapes = {{33, 37, 29}, {5, 3, 7}};
  for (const Start start : {Start::kFirstPartial, Start::kZeros}) {
    for (const Pass pass : {Pass::kStore, Pass::kCopy}) {
      expect_all_right<RotatingAccumulators<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, 1, start,
                                                                             pass);
      expect_all_right<RotatingAccumulators<__half, float>, ScatterProblem<__half>>(GetParam(), shapes, 1, 1,
                                                                                    start, pass);
    }
  }
}

TEST_P(OnRanks, AllToAllSumIsRight) {
  expect_all_right<AllToAllSum<__half>, ScatterProblem<__half>>(GetParam(), dense_shapes());
}

TEST_P(OnRanks, OtherTypesAreRight) {
  const MatmulShape shape = {35, 37, 29};
  expect_right<MultiplyThenScatter<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(), shape);
  expect_right<MultiplyThenScatter<float>, ScatterProblem<float>>(GetParam(), shape);
  expect_right<RotatingAccumulators<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(), shape);
  expect_right<RotatingAccumulators<__nv_bfloat16, float>, ScatterProblem<__nv_bfloat16>>(GetParam(), shape);
  expect_right<RotatingAccumulators<float>, ScatterProblem<float>>(GetParam(), shape);
  expect_right<AllToAllSum<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(), shape);
  expect_right<AllToAllSum<float>, ScatterProblem<float>>(GetParam(), shape);
}

TEST_P(OnRanks, AreRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of ranks; each algorithm takes every third one.
  const unsigned seed = 20261121 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<MatmulShape> shapes = random_shapes(40, seed);
  expect_all_right<AllToAllSum<__half>, ScatterProblem<__half>>(GetParam(), every(3, 0, shapes), seed);
  expect_all_right<RotatingAccumulators<__half>, ScatterProblem<__half>>(GetParam(), every(3, 1, shapes),
                                                                         seed);
  expect_all_right<MultiplyThenScatter<__half>, ScatterProblem<__half>>(GetParam(), every(3, 2, shapes),
                                                                        seed);
}

TEST_P(OnRanks, CallsMayFollowEachOtherAtOnce) {
  const int calls = calls_at_once(5);
  const std::vector<MatmulShape> shapes = {{33, 37, 29}, {3, 5, 2}};
  expect_all_right<RotatingAccumulators<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
  expect_all_right<RotatingAccumulators<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls,
                                                                         Start::kZeros);
  expect_all_right<AllToAllSum<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
  expect_all_right<MultiplyThenScatter<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
}

/// The algorithm's C on all ranks, one after the other, of random normals.
template <typename Algorithm, Floating T>
std::vector<T> result_on_normals(int ranks, MatmulShape whole) {
  std::vector<std::vector<T>> parts(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Rank& rank) {
    ScatterProblem<T> problem(rank, whole, 5);
    Algorithm algorithm(rank, whole);
    problem.fill_normal();
    problem.poison_result();
    rank.barrier();
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    parts[static_cast<std::size_t>(rank.id())] = on_host(problem.c(), std::ssize(problem.reference()));
  });
  std::vector<T> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// All elements within the bound that the page gives for that variant, against sums in f64.
template <typename Algorithm, Floating T>
void expect_within_bound(int ranks, const char* variant) {
  const MatmulShape whole = {33, 37, 129};
  std::vector<T> a(static_cast<std::size_t>(whole.m * whole.k)),
      b(static_cast<std::size_t>(whole.k * whole.n));
  fill_normal<T>(a, whole_matrix(whole.m, whole.k), 5);
  fill_normal<T>(b, whole_matrix(whole.k, whole.n), 6);
  const MatmulNorms norms = matmul_norms(whole, std::span<const T>(a), std::span<const T>(b));
  std::vector<double> right(static_cast<std::size_t>(whole.m * whole.n));
  reference_matmul<T, double>(whole, a, b, right);
  const std::vector<T> found = result_on_normals<Algorithm, T>(ranks, whole);
  const Tolerance tolerance =
      matmul_tolerance(whole.k, type_of<T>(), type_of<T>(), accumulation_of(variant, type_of<T>(), ranks));
  const Verification result = compare_within(std::span<const double>(right), std::span<const T>(found),
                                             whole_matrix(whole.m, whole.n), tolerance, norms);
  EXPECT_TRUE(result.ok()) << variant << " on " << ranks << " ranks: " << describe(result);
}

TEST_P(OnRanks, ErrorsKeepWithinTheirBounds) {
  using Bf16 = __nv_bfloat16;
  expect_within_bound<RotatingAccumulators<__half>, __half>(GetParam(), "rotating");
  expect_within_bound<RotatingAccumulators<__half, float>, __half>(GetParam(), "rotating_f32");
  expect_within_bound<AllToAllSum<__half>, __half>(GetParam(), "all_to_all");
  expect_within_bound<RotatingAccumulators<Bf16>, Bf16>(GetParam(), "rotating");
  expect_within_bound<AllToAllSum<Bf16>, Bf16>(GetParam(), "all_to_all");
}

TEST_P(OnRanks, PartsAloneEndWithAllThatTheyDo) {
  if (GetParam() == 1) GTEST_SKIP() << "one product, and nothing to send";
  run_ranks(GetParam(), [](Rank& rank) {
    ScatterProblem<float> problem(rank, {32, 16, 24}, 1);
    AllToAllSum<float> parts(rank, problem.whole());
    problem.fill_exact();
    expect_all_wait_for_a_late_rank(rank, [&](cudaStream_t stream) { parts.run_transfers(stream); });
    expect_is_waited_for(rank, rank.second_stream(),
                         [&](cudaStream_t stream) { parts.run_products(problem.a(), problem.b(), stream); });
  });
}

TEST_P(OnRanks, ErrorsAreThoseOfAllElementsOnAllRanks) {
  run_ranks(GetParam(), [](Rank& rank) {
    ScatterProblem<float> problem(rank, {17, 3, 8}, 1);
    problem.fill_normal();
    // The correct result, except for one element of each rank that is too small, most of all on the last
    // rank.
    std::vector<float> c(problem.reference().begin(), problem.reference().end());
    const double error = 16.0 * (rank.id() + 1);
    double squares = 0;
    for (int other = 1; other <= rank.size(); ++other) squares += 256.0 * other * other;
    c.front() -= static_cast<float>(error);
    CUDA_CHECK(cudaMemcpyAsync(problem.c(), c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice,
                               rank.stream()));
    const Errors errors = errors_of(problem, {ElementType::kF32, 1});
    EXPECT_NEAR(errors.largest, 16.0 * rank.size(), 1e-4);
    EXPECT_NEAR(errors.root_mean_square, std::sqrt(squares / (17 * 3)), 1e-4);
    for (const double other : rank.exchange(errors.bound)) EXPECT_EQ(other, errors.bound);
  });
}

TEST_P(OnRanks, AllToAllSumGivesTheSameBitsEachTime) {
  const MatmulShape whole = {33, 40, 65};
  const auto bits = [&] {  // of f32: rounding to 16 bits would hide most differences
    std::vector<std::uint32_t> bits;
    for (const float element : result_on_normals<AllToAllSum<float>, float>(GetParam(), whole))
      bits.push_back(std::bit_cast<std::uint32_t>(element));
    return bits;
  };
  const auto first = bits();
  EXPECT_EQ(first.size(), static_cast<std::size_t>(whole.m * whole.n));
  for (int run = 0; run < 3; ++run) EXPECT_EQ(bits(), first);
}

/// Numbers of very different magnitudes, whose sums in f32 depend on the order.
template <Floating T>
std::vector<T> numbers(std::size_t count) {
  std::mt19937 random(11);
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mantissa = static_cast<double>(static_cast<int>(random() % 2001) - 1000);
    values.push_back(from_double<T>(std::ldexp(mantissa, -static_cast<int>(random() % 24))));
  }
  return values;
}

/// The kernel's sums to the last bit, and nothing written behind them. `offset`: where in 16 bytes C begins.
template <Floating T>
void expect_sums_in_order(int count, std::int64_t elements, std::int64_t offset) {
  constexpr std::int64_t kPlace = 64;
  const std::vector<T> slots = numbers<T>(static_cast<std::size_t>(count * kPlace));
  const DeviceBuffer<T> gpu_slots = on_device(0, slots);
  const DeviceBuffer<T> gpu_sum = on_device(0, std::vector<T>(2 * kPlace, from_float<T>(-7)));
  T* const sum = gpu_sum.data() + offset;
  const std::int64_t vectors = vectors_at(sum, elements);
  EXPECT_EQ(vectors > 0, offset == 0 && elements >= kVec16Width<T>);
  sum_slots<T><<<add_blocks(vectors, elements, 2), kAddThreads>>>(gpu_slots.data(), kPlace, count, sum,
                                                                  elements, vectors);
  CUDA_CHECK(cudaGetLastError());
  const std::vector<T> found = on_host(sum, elements + 1);
  for (std::int64_t i = 0; i < elements; ++i) {
    float total = 0;
    for (int slot = 0; slot < count; ++slot)
      total += static_cast<float>(value_of(slots[static_cast<std::size_t>(slot * kPlace + i)]));
    EXPECT_EQ(value_of(found[static_cast<std::size_t>(i)]), value_of(from_float<T>(total)))
        << "element " << i << " of " << elements << ", " << count << " slots";
  }
  EXPECT_EQ(value_of(found.back()), -7);
}

TEST(SumSlots, AddsInF32InTheOrderOfTheSlots) {
  for (const int count : {1, 2, 5, 16}) {
    for (const std::int64_t elements : {1, 7, 8, 61}) {
      for (const std::int64_t offset : {0, 1}) {
        expect_sums_in_order<__half>(count, elements, offset);
        expect_sums_in_order<__nv_bfloat16>(count, elements, offset);
        expect_sums_in_order<float>(count, elements, offset);
      }
    }
  }
}

template <Floating Accumulator, Floating Sum>
void expect_sums_of_two(std::int64_t elements, std::int64_t offset) {
  const std::vector<Accumulator> one = numbers<Accumulator>(64), other(one.rbegin(), one.rend());
  const DeviceBuffer<Accumulator> gpu_one = on_device(0, one), gpu_other = on_device(0, other);
  const DeviceBuffer<Sum> gpu_sum = on_device(0, std::vector<Sum>(128, from_float<Sum>(-7)));
  Sum* const sum = gpu_sum.data() + offset;
  const std::int64_t vectors = vectors_at(sum, elements);
  add<<<add_blocks(vectors, elements, 2), kAddThreads>>>(gpu_one.data(), gpu_other.data(), sum, elements,
                                                         vectors);
  CUDA_CHECK(cudaGetLastError());
  const std::vector<Sum> found = on_host(sum, elements + 1);
  for (std::size_t i = 0; i + 1 < found.size(); ++i) {
    const float total = static_cast<float>(value_of(one[i])) + static_cast<float>(value_of(other[i]));
    EXPECT_EQ(value_of(found[i]), value_of(from_float<Sum>(total))) << "element " << i << " of " << elements;
  }
  EXPECT_EQ(value_of(found.back()), -7);
}

TEST(Add, RoundsTheSumOnce) {
  for (const std::int64_t elements : {1, 8, 61}) {
    for (const std::int64_t offset : {0, 1}) {
      expect_sums_of_two<__half, __half>(elements, offset);
      expect_sums_of_two<float, __half>(elements, offset);
      expect_sums_of_two<float, float>(elements, offset);
      expect_sums_of_two<__nv_bfloat16, __nv_bfloat16>(elements, offset);
    }
  }
}

TEST(ReduceScatterErrors, BoundsAreOrderedByTheirRoundings) {
  const auto bound = [](const char* variant, ElementType type) {
    return matmul_tolerance(4096, type, type, accumulation_of(variant, type, 8)).magnitude;
  };
  for (const ElementType type : {ElementType::kF16, ElementType::kBf16}) {
    EXPECT_LT(bound("rotating_f32", type), bound("all_to_all", type));
    EXPECT_LT(bound("all_to_all", type), bound("rotating", type));
    EXPECT_EQ(bound("nccl", type), bound("rotating", type));
  }
}

TEST(ReduceScatterErrors, TheRoundingOfTheResultIsCountedOnce) {
  const auto bound = [](const char* variant, int ranks) {
    return matmul_tolerance(4096, ElementType::kF16, ElementType::kF16,
                            accumulation_of(variant, ElementType::kF16, ranks))
        .magnitude;
  };
  const double in_f32 = matmul_tolerance(4096, ElementType::kF16, ElementType::kF16, {}).magnitude;
  for (const char* variant : {"nccl", "rotating", "rotating_f32", "all_to_all"}) {
    EXPECT_EQ(bound(variant, 1), in_f32) << variant;  // nothing is rounded on the way
  }
  EXPECT_EQ(bound("rotating", 2), bound("all_to_all", 2));  // one partial product is stored
  EXPECT_GT(bound("rotating", 2), in_f32);
}

TEST(ReduceScatterCost, IsThePagesCostCard) {
  // f16, the first shape: [8192, 32768] times [32768, 4096] on 8 GPUs.
  const MatmulShape whole = {8192, 4096, 32768};
  const std::int64_t chunk = 8'388'608;  // 1024 x 4096 elements of 2 bytes
  const Cost nccl = MultiplyThenScatter<__half>::cost(whole, 8);
  EXPECT_EQ(nccl.messages, 7);
  EXPECT_EQ(nccl.bytes_out, 7 * chunk);
  EXPECT_EQ(nccl.bytes_in, 7 * chunk);
  EXPECT_EQ(nccl.products, 1);
  EXPECT_EQ(nccl.memory, 9 * chunk);
  const Cost all = AllToAllSum<__half>::cost(whole, 8, 3);
  EXPECT_EQ(all.messages, 7);
  EXPECT_EQ(all.products, 8);
  EXPECT_EQ(all.launches, 1);
  EXPECT_EQ(all.bytes_out, 7 * chunk);
  EXPECT_EQ(all.bytes_in, 7 * chunk);
  EXPECT_EQ(all.memory, 23 * chunk);
  using Rotating = RotatingAccumulators<__half>;
  const Cost rotating = Rotating::cost(whole, 8, 3);
  EXPECT_EQ(rotating.messages, 7);
  EXPECT_EQ(rotating.bytes_out, 7 * chunk);
  EXPECT_EQ(rotating.bytes_in, 7 * chunk);
  EXPECT_EQ(rotating.products, 8);
  EXPECT_EQ(rotating.launches, 7);
  EXPECT_EQ(rotating.memory, 24 * chunk);
  EXPECT_EQ(Rotating::bytes_by_copy(whole, 8, 3, Start::kFirstPartial, Pass::kStore), chunk);
  EXPECT_EQ(Rotating::bytes_by_copy(whole, 8, 3, Start::kFirstPartial, Pass::kCopy), 7 * chunk);
  const Cost zeros = Rotating::cost(whole, 8, 3, Start::kZeros);
  EXPECT_EQ(zeros.messages, 8);
  EXPECT_EQ(zeros.bytes_out, 8 * chunk);
  EXPECT_EQ(zeros.launches, 8);
  EXPECT_EQ(zeros.memory, 25 * chunk);
  EXPECT_EQ(Rotating::bytes_by_copy(whole, 8, 3, Start::kZeros, Pass::kCopy), 8 * chunk);
  EXPECT_EQ((RotatingAccumulators<__half, float>::cost(whole, 8, 3).bytes_out), 14 * chunk);
}

TEST(ReduceScatterCost, CountsUnevenAndEmptyChunks) {
  // 3 rows of 5 elements on 4 ranks: the last rank owns no rows, but multiplies and adds for the others.
  const MatmulShape whole = {3, 5, 8};
  EXPECT_EQ(MultiplyThenScatter<__half>::cost(whole, 4).products, 1);       // three dense slots
  EXPECT_EQ(MultiplyThenScatter<__half>::cost({33, 5, 8}, 4).products, 4);  // 9 rows, and three times 8
  const Cost all = AllToAllSum<__half>::cost(whole, 4, 3);
  EXPECT_EQ(all.products, 3);
  EXPECT_EQ(all.launches, 0);
  EXPECT_EQ(all.bytes_out, 3 * 5 * 2);
  EXPECT_EQ(all.bytes_in, 0);
  const Cost last = RotatingAccumulators<__half>::cost(whole, 4, 3);  // begins chunk 2, adds to 1 and 0
  EXPECT_EQ(last.launches, 2);
  EXPECT_EQ(last.bytes_out, 3 * 5 * 2);
  EXPECT_EQ(last.bytes_in, 2 * 5 * 2);
  const Cost first = RotatingAccumulators<__half>::cost(whole, 4, 0);  // begins chunk 3, which has no rows
  EXPECT_EQ(first.launches, 3);
  EXPECT_EQ(first.bytes_out, 2 * 5 * 2);
  EXPECT_EQ(first.bytes_in, 3 * 5 * 2);
}

TEST(ReduceScatterCost, OfOneRankIsNothing) {
  for (const Cost& cost :
       {MultiplyThenScatter<__half>::cost({8, 8, 8}, 1), AllToAllSum<__half>::cost({8, 8, 8}, 1, 0),
        RotatingAccumulators<__half>::cost({8, 8, 8}, 1, 0, Start::kZeros)}) {
    EXPECT_EQ(cost.messages, 0);
    EXPECT_EQ(cost.bytes_out, 0);
    EXPECT_EQ(cost.bytes_in, 0);
    EXPECT_EQ(cost.products, 1);
    EXPECT_EQ(cost.launches, 0);
  }
}

TEST(Packs, AreTakenOnlyWhereTheyAreAligned) {
  alignas(16) const float values[8] = {};
  EXPECT_EQ(vectors_at(values, 7), 1);
  EXPECT_EQ(vectors_at(values + 4, 4), 1);
  EXPECT_EQ(vectors_at(values + 1, 7), 0);
  const Chunks chunks{7, 5, 3};  // 3, 2 and 2 rows
  EXPECT_EQ(chunks.max_elements(), 15);
}

}  // namespace
}  // namespace overlap::reduce_scatter
