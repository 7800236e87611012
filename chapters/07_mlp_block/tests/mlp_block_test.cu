// Chapter 07 on any GPUs: right for every number of ranks, any sizes and all types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "mlp_run.hpp"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/program/options.hpp"

namespace overlap::mlp_block {
namespace {

// ---- The kernels between the products ---------------------------------------------------------------------

template <typename T>
class Kernels : public testing::Test {
 protected:
  static std::vector<T> values(std::size_t count, double limit) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = from_double<T>(
          limit * (2.0 * static_cast<double>(i * 7919 % count) / static_cast<double>(count) - 1));
    }
    return values;
  }
  static void upload(const std::vector<T>& from, T* to) {
    CUDA_CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  /// Rounding to T once, and some in f32. `slack`: relative error in f32.
  static double allowed(double right, double slack = 0x1p-20) {
    const double u = std::same_as<T, float> ? 0 : std::same_as<T, __half> ? 0x1p-11 : 0x1p-8;
    return std::abs(right) * (u + slack) + (std::same_as<T, __half> ? 0x1p-25 : 1e-37);
  }
};
using Types = testing::Types<__half, __nv_bfloat16, float>;
TYPED_TEST_SUITE(Kernels, Types);

TYPED_TEST(Kernels, ActivateIsTheFunctionAtEveryAlignment) {
  using T = TypeParam;
  const DeviceBuffer<T> memory(0, 3000);
  for (const Activation activation : {Activation::kRelu, Activation::kGeluTanh, Activation::kGeluErf}) {
    for (const int offset : {0, 1, 8}) {
      for (const int count : {1, 7, 8, 9, 2049}) {
        const std::vector<T> in = this->values(count + 1, 12);  // the last element must not change
        this->upload(in, memory.data() + offset);
        activate(memory.data() + offset, count, activation, nullptr);
        const std::vector<T> out = on_host(memory.data() + offset, in.size());
        for (int i = 0; i < count; ++i) {
          const double right = activated(activation, value_of(in[i]));
          // For large negative arguments GELU is an exponential, which multiplies the relative error by the
          // argument.
          const double allowed = this->allowed(right, value_of(in[i]) < -1 ? 0x1p-14 : 0x1p-20);
          ASSERT_NEAR(value_of(out[i]), right, allowed) << "of " << value_of(in[i]);
        }
        ASSERT_EQ(value_of(out[count]), value_of(in[count]));
      }
    }
  }
}

TYPED_TEST(Kernels, ActivationsKeepNan) {
  using T = TypeParam;
  const DeviceBuffer<T> memory(0, 1);
  for (const Activation activation : {Activation::kRelu, Activation::kGeluTanh, Activation::kGeluErf}) {
    this->upload({from_float<T>(NAN)}, memory.data());
    activate(memory.data(), 1, activation, nullptr);
    EXPECT_TRUE(is_nan(on_host(memory.data(), 1)[0]));
  }
}

TYPED_TEST(Kernels, NormaliseIsRmsNormForAnyRowsAndAlignment) {
  using T = TypeParam;
  for (const std::int64_t h : {1, 5, 8, 64, 100, 2056}) {
    for (const int offset : {0, 3}) {
      const std::size_t count = static_cast<std::size_t>(3 * h);
      const std::vector<T> x = this->values(count, 5), gain = this->values(static_cast<std::size_t>(h), 2);
      const DeviceBuffer<T> memory(0, 2 * count + 32), gains(0, gain.size());
      T* out = memory.data() + count + 16;
      this->upload(x, memory.data() + offset);
      this->upload(gain, gains.data());
      normalise(memory.data() + offset, gains.data(), out, 3, h, 1e-5f, nullptr);
      const std::vector<T> found = on_host(out, count);
      const std::vector<double> right = reference_norm<T>(x, gain, 1e-5);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(value_of(found[i]), right[i], this->allowed(right[i])) << h << " in a row, element " << i;
      }
    }
  }
}

TYPED_TEST(Kernels, AddResidualAtEveryAlignment) {
  using T = TypeParam;
  const std::size_t count = 517;
  const std::vector<T> x = this->values(count, 3), z = this->values(count, 1);
  const DeviceBuffer<T> memory(0, 2 * count + 32);
  for (const int offset : {0, 1}) {
    T* y = memory.data() + count + 19 + offset;  // 19 + 517 elements are a multiple of 16 bytes
    this->upload(x, memory.data());
    this->upload(z, y);
    add_residual(memory.data(), y, y, static_cast<std::int64_t>(count), nullptr);
    const std::vector<T> found = on_host(y, count);
    for (std::size_t i = 0; i < count; ++i) {
      const double right = value_of(x[i]) + value_of(z[i]);
      ASSERT_NEAR(value_of(found[i]), right, this->allowed(right));
    }
  }
}

// 16 bytes at a time only if all three pointers are aligned to 16 bytes.
TYPED_TEST(Kernels, AddResidualWhereverTheThreeAre) {
  using T = TypeParam;
  const std::size_t count = 517, room = 544;  // a multiple of 16 bytes, with space behind each
  const std::vector<T> x = this->values(count, 3), z = this->values(count, 1);
  const std::vector<T> untouched(3 * room, from_float<T>(-77));
  const DeviceBuffer<T> memory(0, untouched.size());
  for (int misaligned = 0; misaligned < 8; ++misaligned) {
    SCOPED_TRACE("misaligned: " + std::string((misaligned & 1) != 0 ? "x " : "") +
                 ((misaligned & 2) != 0 ? "z " : "") + ((misaligned & 4) != 0 ? "y" : ""));
    this->upload(untouched, memory.data());
    const auto begin = [&](int which) {
      return static_cast<std::size_t>(which) * room + ((misaligned >> which & 1) != 0 ? 3 : 0);
    };
    this->upload(x, memory.data() + begin(0));
    this->upload(z, memory.data() + begin(1));
    add_residual<T>(memory.data() + begin(0), memory.data() + begin(1), memory.data() + begin(2),
                    static_cast<std::int64_t>(count), nullptr);
    const std::vector<T> found = on_host(memory.data() + 2 * room, room);
    for (std::size_t i = 0; i < room; ++i) {
      const std::size_t element = i - (begin(2) - 2 * room);  // large before the first one
      const double right = element < count ? value_of(x[element]) + value_of(z[element]) : -77;
      ASSERT_NEAR(value_of(found[i]), right, element < count ? this->allowed(right) : 0) << i;
    }
  }
}

TEST(Gelu, TheTwoFormsDiffer) {
  double most = 0;
  for (double v = -8; v < 8; v += 0.001) {
    const double difference = activated(Activation::kGeluTanh, v) - activated(Activation::kGeluErf, v);
    most = std::max(most, std::abs(difference));
  }
  EXPECT_GT(most, 4e-4);
  EXPECT_LT(most, 5e-4);
}

// ---- The blocks -------------------------------------------------------------------------------------------

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(MlpBlock, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, VanillaIsRight) { expect_right_blocks<VanillaBlock<__half>>(GetParam(), dense_shapes()); }
TEST_P(OnRanks, SequenceParallelIsRight) {
  expect_right_blocks<SequenceParallelBlock<__half>>(GetParam(), dense_shapes());
}
TEST_P(OnRanks, OverlappedIsRight) {
  expect_right_blocks<OverlappedBlock<__half>>(GetParam(), dense_shapes());
}

TEST_P(OnRanks, AllAreRightInBf16AndF32) {
  const MatmulShape shape{33, 37, 29};
  expect_right_block<OverlappedBlock<__nv_bfloat16>>(GetParam(), shape);
  expect_right_block<OverlappedBlock<float>>(GetParam(), shape);
  expect_right_block<VanillaBlock<__nv_bfloat16>>(GetParam(), shape);
  expect_right_block<SequenceParallelBlock<__nv_bfloat16>>(GetParam(), shape);
  expect_right_block<VanillaBlock<float>>(GetParam(), shape);
  expect_right_block<SequenceParallelBlock<float>>(GetParam(), shape);
}

TEST_P(OnRanks, OverlappedIsRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of ranks.
  const unsigned seed = 20261121 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_right_blocks<OverlappedBlock<__half>>(GetParam(), random_shapes(40, seed), seed);
}

TEST_P(OnRanks, OthersAreRightOnRandomSizes) {
  const unsigned seed = 20261221 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_right_blocks<SequenceParallelBlock<__half>>(GetParam(), random_shapes(10, seed), seed);
  expect_right_blocks<VanillaBlock<__half>>(GetParam(), random_shapes(10, seed), seed);
}

TEST_P(OnRanks, CallsMayFollowEachOtherAtOnce) {
  expect_right_block<OverlappedBlock<__half>>(GetParam(), {19, 40, 24}, 5, calls_at_once(7));
  expect_right_block<SequenceParallelBlock<__half>>(GetParam(), {19, 40, 24}, 5, calls_at_once(3));
  expect_right_block<VanillaBlock<__half>>(GetParam(), {19, 40, 24}, 5, calls_at_once(3));
}

// ---- Random normals: the tolerance passes what is right, and not what is not ------------------------------

/// The result of the comparison on random normals, which expects `activation`; the layer computes
/// `layer_activation`.
template <Floating T>
Verification run_normal(int ranks, Activation activation, Activation layer_activation, bool residual = true) {
  return found_on(ranks, [&](Rank& rank) {
    MlpProblem<T> problem(rank, {40, 96, 64}, 3, activation);
    OverlappedBlock<T> block(rank, problem.whole());
    problem.fill_normal();
    problem.poison_result();
    MlpLayer<T> layer = problem.b();
    layer.activation = layer_activation;
    rank.barrier();
    T* y = problem.c();
    block.run(problem.a(), layer, y, rank.stream());
    if (!residual) {
      const std::int64_t rows = balanced_share(problem.whole().m, rank.size(), rank.id()).size();
      CUDA_CHECK(cudaMemsetAsync(y, 0, rows * problem.whole().k * sizeof(T), rank.stream()));
    }
    rank.synchronize(rank.stream());
    return problem.compare_normal(false);
  });
}

/// In which calls of a block the frame of the chapter's program finds a fault ('x'): nothing is written, or
/// an element is wrong.
template <typename Block>
std::string calls_in_which_a_fault_is_found(bool writes_nothing) {
  const ChapterInfo chapter = {.name = "99_test", .variants = {"block"}};
  Options options;
  options.variants = chapter.variants;
  options.iterations = 2;
  std::string found;
  for (int call = 1; call <= 7; ++call) {
    try {
      run_ranks(1, [&](Rank& rank) {
        typename BlockTraits<Block>::Problem problem(rank, {19, 23, 16}, 7);
        Block block(rank, problem.whole());
        DenseBench bench(problem, options);
        bench.add("block", Role::kAlgorithm, [&]() -> DenseBench::Enqueue {
          return [&, calls = 0](cudaStream_t stream) mutable {
            const bool faulty = ++calls == call;
            if (faulty && writes_nothing) return;
            auto* y = problem.c();
            block.run(problem.a(), problem.b(), y, stream);
            if (faulty) CUDA_CHECK(cudaMemsetAsync(y + 5, 0x44, sizeof(*y), stream));
          };
        });
        bench.verify();
        bench.time(false);
      });
      found += '-';
    } catch (const WrongResult&) {
      found += 'x';
    }
  }
  return found;
}

// One call in verify(); in time() one to warm up, and in each of two iterations one of the GPU's time and one
// with the host's. The GPU's last one is compared: the fifth of seven.
TEST(MlpBench, OfEachBlockOneCallIsVerifiedAndOneTimedOneCompared) {
  for (const bool writes_nothing : {false, true}) {
    EXPECT_EQ(calls_in_which_a_fault_is_found<VanillaBlock<__half>>(writes_nothing), "x---x--");
    EXPECT_EQ(calls_in_which_a_fault_is_found<SequenceParallelBlock<float>>(writes_nothing), "x---x--");
    EXPECT_EQ(calls_in_which_a_fault_is_found<OverlappedBlock<__nv_bfloat16>>(writes_nothing), "x---x--");
  }
}

TYPED_TEST(Kernels, BlocksAreRightOnRandomNormals) {
  for (const Activation activation : {Activation::kRelu, Activation::kGeluTanh, Activation::kGeluErf}) {
    const Verification found = run_normal<TypeParam>(3, activation, activation);
    EXPECT_TRUE(found.ok()) << describe(found);
    EXPECT_EQ(found.elements, 40 * 64);
  }
}

TYPED_TEST(Kernels, TheToleranceNoticesAWrongActivationAndALostResult) {
  if (!std::same_as<TypeParam, __nv_bfloat16>) {  // in bf16 GELU and ReLU differ by less than the tolerance
    EXPECT_FALSE(run_normal<TypeParam>(2, Activation::kGeluTanh, Activation::kRelu).ok());
  }
  const Verification lost = run_normal<TypeParam>(2, Activation::kGeluTanh, Activation::kGeluTanh, false);
  EXPECT_GT(lost.mismatches, lost.elements / 4);
}

// ---- The cost card ----------------------------------------------------------------------------------------

TEST(MlpCost, VanillaAndSequenceParallelMoveTheSameBytes) {
  const MatmulShape shape{64, 96, 48};
  for (const int ranks : {1, 2, 4, 8}) {
    const Cost vanilla = VanillaBlock<__half>::cost(shape, ranks, 0);
    const Cost sequence = SequenceParallelBlock<__half>::cost(shape, ranks, 0);
    const Cost overlapped = OverlappedBlock<__half>::cost(shape, ranks, 0);
    const std::int64_t bytes = 2 * (ranks - 1) * (64 / ranks) * 48 * 2;
    for (const Cost& cost : {vanilla, sequence, overlapped}) {
      EXPECT_EQ(cost.bytes_in, bytes) << ranks;
      EXPECT_EQ(cost.bytes_out, bytes) << ranks;
      EXPECT_EQ(cost.messages, 2 * (ranks - 1));
    }
    const std::int64_t activation = SequenceParallelBlock<__half>::activation_bytes(shape, ranks, 0);
    EXPECT_EQ(VanillaBlock<__half>::activation_bytes(shape), activation * ranks);
    EXPECT_EQ(OverlappedBlock<__half>::activation_bytes(shape, ranks, 0), activation);
  }
}

// 5 tokens on 2 ranks, of which the second has 2, hidden size 4, feed-forward size 6: 3 columns for each.
TEST(MlpCost, CountsUnevenTokens) {
  const MatmulShape shape{5, 6, 4};
  const Cost vanilla = VanillaBlock<__half>::cost(shape, 2, 1);
  EXPECT_EQ(vanilla.bytes_out, 2 * 10 * 2);  // half of 20 elements, twice
  EXPECT_EQ(VanillaBlock<__half>::activation_bytes(shape), 3 * 20 * 2);
  EXPECT_EQ(vanilla.memory, (20 + 5 * 3) * 2);
  // Slots of 3 tokens: its own, both, and the results of the first GEMM for both.
  const Cost sequence = SequenceParallelBlock<__half>::cost(shape, 2, 1);
  EXPECT_EQ(sequence.bytes_out, 2 * 12 * 2);
  EXPECT_EQ(SequenceParallelBlock<__half>::activation_bytes(shape, 2, 1), 3 * 8 * 2);
  EXPECT_EQ(sequence.memory, (12 + 24 + 6 * 3) * 2);
  // Receives a shard of 3 tokens and sends one of 2; then receives a summand of 2 tokens and sends one of 3.
  const Cost overlapped = OverlappedBlock<__half>::cost(shape, 2, 1);
  EXPECT_EQ(overlapped.bytes_in, (12 + 8) * 2);
  EXPECT_EQ(overlapped.bytes_out, (8 + 12) * 2);
  EXPECT_EQ(OverlappedBlock<__half>::activation_bytes(shape, 2, 1), 3 * 8 * 2);
}

TEST(MlpCost, IsThePagesCostCard) {
  const MatmulShape shape{8192, 28672, 8192};
  for (const Cost& cost :
       {VanillaBlock<__half>::cost(shape, 8, 3), SequenceParallelBlock<__half>::cost(shape, 8, 3),
        OverlappedBlock<__half>::cost(shape, 8, 3)}) {
    EXPECT_EQ(cost.messages, 14);
    EXPECT_EQ(cost.bytes_in, 234'881'024);
    EXPECT_EQ(cost.bytes_out, 234'881'024);
  }
  const Cost vanilla = VanillaBlock<__half>::cost(shape, 8, 3);
  EXPECT_EQ(vanilla.products, 2);
  EXPECT_EQ(vanilla.launches, 3);
  const Cost overlapped = OverlappedBlock<__half>::cost(shape, 8, 3);
  EXPECT_EQ(overlapped.products, 16);  // each of the two in a part for each rank
  EXPECT_EQ(overlapped.launches, 4);   // one more, for the sum
  EXPECT_EQ(VanillaBlock<__half>::activation_bytes(shape), 402'653'184);
  EXPECT_EQ(SequenceParallelBlock<__half>::activation_bytes(shape, 8, 3), 50'331'648);
  EXPECT_EQ(OverlappedBlock<__half>::activation_bytes(shape, 8, 3), 50'331'648);
  EXPECT_EQ(VanillaBlock<__half>::cost(shape, 8, 3).memory, 192'937'984);
  EXPECT_EQ(SequenceParallelBlock<__half>::cost(shape, 8, 3).memory, 209'715'200);
  EXPECT_EQ(OverlappedBlock<__half>::cost(shape, 8, 3).memory, 696'254'464);
}

}  // namespace
}  // namespace overlap::mlp_block
