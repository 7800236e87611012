// The dense bench: right variants pass, wrong ones fail, variants that cannot run are skipped.
#include "overlap/bench/dense_bench.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "overlap/bench/mlp_problem.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {.name = "99_test", .variants = {"first", "second"}};

class DenseBenchTest : public testing::Test {};

Options options() {
  Options options;
  options.variants = kChapter.variants;
  options.iterations = 2;
  return options;
}

/// The result of gather chapters, from all of A, which DenseBench offers only to GEMM variants; can corrupt
/// one element.
template <Floating T>
DenseBench::Enqueue product_of(GatherProblem<T>& problem, bool spoil) {
  return [&problem, spoil](cudaStream_t stream) {
    Rank& rank = problem.rank();
    matmul_row_major(rank.cublas(), stream, problem.product(), problem.whole_a(), problem.b(), problem.c());
    const std::size_t last = static_cast<std::size_t>(problem.product().m * problem.product().n) - 1;
    if (spoil && rank.id() == rank.size() - 1)
      CUDA_CHECK(cudaMemsetAsync(problem.c() + last, 0x44, sizeof(T), stream));
  };
}

template <Floating T>
void verify_gather(const Options& options, bool spoil, bool times = false) {
  run_ranks(3, [&](Rank& rank) {
    GatherProblem<T> problem(rank, {19, 23, 17}, 7);
    DenseBench bench(problem, options);
    bench.add("first", Role::kAlgorithm, [&] { return product_of(problem, spoil && !times); });
    bench.verify();
    if (!times) return;
    bench.add("second", Role::kAlgorithm, [&] { return product_of(problem, spoil); });
    bench.time();
  });
}

TEST_F(DenseBenchTest, ARightResultPasses) {
  verify_gather<__half>(options(), false);
  verify_gather<__nv_bfloat16>(options(), false);
  verify_gather<float>(options(), false);
}

TEST_F(DenseBenchTest, OneWrongElementOfTheLastRankIsFound) {
  EXPECT_THROW(verify_gather<__half>(options(), true), WrongResult);
  EXPECT_THROW(verify_gather<__nv_bfloat16>(options(), true), WrongResult);
  EXPECT_THROW(verify_gather<float>(options(), true), WrongResult);
}

TEST_F(DenseBenchTest, TheResultOfTheLastTimedCallIsCompared) {
  verify_gather<float>(options(), false, true);
  EXPECT_THROW(verify_gather<float>(options(), true, true), WrongResult);
}

enum class Fault {
  kWritesNothing,      ///< C keeps what it has
  kMultipliesNothing,  ///< what its last right call has computed comes back
  kSpoilsAnElement,
  kLeavesAnElement,  ///< the last one keeps what it has
  kWritesNan,
};

const float* first_operand(const GatherProblem<float>& problem) { return problem.whole_a(); }
const float* first_operand(const ScatterProblem<float>& problem) { return problem.a(); }

/// An algorithm that copies from its own right C; its result is wrong in calls `first` to `last`.
template <typename Problem>
DenseBench::Enqueue wrong_in_calls(Problem& problem, Fault fault, int first, int last) {
  const auto bytes = static_cast<std::size_t>(problem.product().m * problem.product().n) * sizeof(float);
  const auto own = std::make_shared<DeviceBuffer<float>>(problem.rank().device(), bytes / sizeof(float));
  return [&problem, fault, first, last, own, bytes, calls = 0](cudaStream_t stream) mutable {
    ++calls;
    const bool wrong = first <= calls && calls <= last;
    if (wrong && fault == Fault::kWritesNothing) return;
    if (!wrong || fault != Fault::kMultipliesNothing) {
      matmul_row_major(problem.rank().cublas(), stream, problem.product(), first_operand(problem),
                       problem.b(), own->data());
    }
    const std::size_t left = wrong && fault == Fault::kLeavesAnElement ? sizeof(float) : 0;
    CUDA_CHECK(cudaMemcpyAsync(problem.c(), own->data(), bytes - left, cudaMemcpyDefault, stream));
    if (wrong && fault == Fault::kSpoilsAnElement)
      CUDA_CHECK(cudaMemsetAsync(problem.c() + bytes / sizeof(float) - 1, 0x44, sizeof(float), stream));
    if (wrong && fault == Fault::kWritesNan) CUDA_CHECK(cudaMemsetAsync(problem.c(), 0xFF, bytes, stream));
  };
}

/// True if the bench reports that variant by name.
template <typename Problem>
bool is_found(int ranks, Fault fault, int first, int last) {
  try {
    run_ranks(ranks, [&](Rank& rank) {
      Problem problem(rank, {19, 23, 17}, 7);
      DenseBench bench(problem, options());
      bench.add("first", Role::kAlgorithm, [&] { return wrong_in_calls(problem, fault, 0, 0); });
      bench.add("second", Role::kAlgorithm, [&] { return wrong_in_calls(problem, fault, first, last); });
      bench.verify();
      bench.time(false);
    });
  } catch (const WrongResult& wrong) {
    EXPECT_NE(std::string(wrong.what()).find("second"), std::string::npos) << wrong.what();
    return true;
  }
  return false;
}

// Calls of each variant: verify() makes one; time() makes one to warm up, then in each of two iterations one
// timed by the GPU and one by the host. The GPU's last one is compared: call 5 of 7.
constexpr int kVerified = 1, kTimed = 5, kCalls = 7;

TEST_F(DenseBenchTest, OfEachAlgorithmOneCallIsVerifiedAndOneTimedOneCompared) {
  for (const Fault fault : {Fault::kWritesNothing, Fault::kMultipliesNothing, Fault::kSpoilsAnElement,
                            Fault::kLeavesAnElement, Fault::kWritesNan}) {
    for (int call = 1; call <= kCalls; ++call) {
      EXPECT_EQ(is_found<GatherProblem<float>>(2, fault, call, call), call == kVerified || call == kTimed)
          << "fault " << static_cast<int>(fault) << " in call " << call;
    }
  }
}

TEST_F(DenseBenchTest, WhatEarlierCallsHaveLeftDoesNotPass) {
  for (const Fault fault : {Fault::kWritesNothing, Fault::kMultipliesNothing}) {
    for (int right = 0; right < kTimed; ++right) {
      EXPECT_TRUE(is_found<GatherProblem<float>>(2, fault, right + 1, 100)) << right << " right calls";
      EXPECT_TRUE(is_found<ScatterProblem<float>>(1, fault, right + 1, 100)) << right << " right calls";
      EXPECT_TRUE(is_found<AllReduceProblem<float>>(1, fault, right + 1, 100)) << right << " right calls";
    }
    EXPECT_FALSE(is_found<GatherProblem<float>>(2, fault, kTimed + 1, 100));
    EXPECT_FALSE(is_found<ScatterProblem<float>>(1, fault, kTimed + 1, 100));
    EXPECT_FALSE(is_found<AllReduceProblem<float>>(1, fault, kTimed + 1, 100));
  }
}

/// Every element of a result after poison_result().
template <Floating T>
void expect_poisoned(DenseProblem& problem, T* result, std::int64_t elements) {
  CUDA_CHECK(cudaMemset(result, 0, static_cast<std::size_t>(elements) * sizeof(T)));
  CUDA_CHECK(cudaDeviceSynchronize());
  problem.poison_result();
  for (const T element : on_host(result, elements)) ASSERT_TRUE(std::isnan(value_of(element)));
}

TEST_F(DenseBenchTest, PoisonIsInEveryElement) {
  run_ranks(1, [](Rank& rank) {
    GatherProblem<__half> gather(rank, {19, 23, 17}, 7);
    expect_poisoned(gather, gather.c(), 19 * 23);
    ScatterProblem<float> scatter(rank, {19, 23, 17}, 7);
    expect_poisoned(scatter, scatter.c(), 19 * 23);
    AllReduceProblem<float> sum(rank, {19, 23, 17}, 7);
    expect_poisoned(sum, sum.c(), 19 * 23);
    MlpProblem<__nv_bfloat16> mlp(rank, {19, 23, 17}, 7);
    expect_poisoned(mlp, mlp.c(), 19 * 17);
    expect_poisoned(mlp, mlp.whole_y(), 19 * 17);
  });
}

TEST_F(DenseBenchTest, ACorruptedResultIsFoundUnlessNothingIsChecked) {
  Options corrupt = options();
  corrupt.corrupt = true;
  EXPECT_THROW(verify_gather<__half>(corrupt, false), WrongResult);
  corrupt.check = false;
  EXPECT_NO_THROW(verify_gather<__half>(corrupt, false));
}

TEST_F(DenseBenchTest, ResultsCanBeLookedAtOneByOne) {
  run_ranks(2, [](Rank& rank) {
    ScatterProblem<float> problem(rank, {6, 5, 4}, 3);
    DenseBench bench(problem, options());
    const auto writes = [&](int byte) {
      return [&problem, byte]() -> DenseBench::Enqueue {
        return [&problem, byte](cudaStream_t stream) {
          CUDA_CHECK(cudaMemsetAsync(problem.c(), byte, 15 * sizeof(float), stream));
        };
      };
    };
    bench.add("first", Role::kAlgorithm, writes(0));
    bench.add("second", Role::kProduct, writes(1));
    problem.fill_normal();
    EXPECT_EQ(problem.reference().size(), 15u);
    EXPECT_EQ(problem.norms().a_rows.size(), 3u);
    std::string seen;
    bench.look_at_results([&](const std::string& name) {
      unsigned char byte = 0xFF;
      CUDA_CHECK(cudaMemcpy(&byte, problem.c(), 1, cudaMemcpyDeviceToHost));
      seen += name + std::to_string(byte) + " ";
    });
    EXPECT_EQ(seen, "first0 second1 ");
  });
}

TEST_F(DenseBenchTest, CommunicationOfOneRankMayTakeNoTime) {
  run_ranks(1, [](Rank& rank) {
    const Options all = options();
    ScatterProblem<float> problem(rank, {6, 5, 4}, 3);
    DenseBench bench(problem, all);
    bench.add("first", Role::kCommunication, [] { return [](cudaStream_t) {}; });
    bench.time();
    Report report(kChapter, all);
    EXPECT_NO_THROW(bench.print());
    EXPECT_NO_THROW(bench.save(report));
  });
}

TEST_F(DenseBenchTest, ResultsThatAreNotWrittenAreFound) {
  const auto forgets = [](Rank& rank, bool of_scatter) {
    GatherProblem<__half> gather(rank, {8, 8, 8}, 1);
    ScatterProblem<__half> scatter(rank, {8, 8, 8}, 1);
    DenseProblem& problem = of_scatter ? static_cast<DenseProblem&>(scatter) : gather;
    DenseBench bench(problem, options());
    bench.add("first", Role::kAlgorithm, [] { return [](cudaStream_t) {}; });
    bench.verify();
  };
  EXPECT_THROW(run_ranks(2, [&](Rank& rank) { forgets(rank, false); }), WrongResult);
  EXPECT_THROW(run_ranks(2, [&](Rank& rank) { forgets(rank, true); }), WrongResult);
}

/// negate() flips the sign of an operand of the problem; a second call restores it.
template <Floating T>
void expect_negated(DenseProblem& problem, const T* operand, std::int64_t elements) {
  problem.fill_normal();
  const std::vector<T> before = on_host(operand, elements);
  for (const double sign : {-1.0, 1.0}) {
    problem.negate();
    const std::vector<T> now = on_host(operand, elements);
    for (std::size_t i = 0; i < before.size(); ++i) ASSERT_EQ(value_of(now[i]), sign * value_of(before[i]));
  }
}

TEST_F(DenseBenchTest, ANegatedProblemHasOtherOperands) {
  run_ranks(1, [](Rank& rank) {
    GatherProblem<__half> gather(rank, {19, 23, 17}, 7);
    expect_negated(gather, gather.a(), 19 * 17);
    expect_negated(gather, gather.whole_a(), 19 * 17);
    ScatterProblem<float> scatter(rank, {19, 23, 17}, 7);
    expect_negated(scatter, scatter.a(), 19 * 17);
    MlpProblem<__nv_bfloat16> mlp(rank, {19, 23, 17}, 7);
    mlp.fill_normal();
    expect_negated(mlp, mlp.a(), 19 * 17);
    expect_negated(mlp, mlp.whole_x(), 19 * 17);
    expect_negated(mlp, mlp.b().gain, 17);
    expect_negated(mlp, mlp.b().w2, 23 * 17);
  });
}

// So a block that copies the Y of an earlier call fails. A Y of zeros shows what is expected.
TEST_F(DenseBenchTest, ANegatedMlpBlockHasTheNegatedResult) {
  run_ranks(1, [](Rank& rank) {
    MlpProblem<float> mlp(rank, {19, 23, 17}, 7);
    mlp.fill_normal();
    CUDA_CHECK(cudaMemset(mlp.c(), 0, sizeof(float) * 19 * 17));
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<Mismatch> before = mlp.compare_normal(false).first;
    mlp.negate();
    const std::vector<Mismatch> after = mlp.compare_normal(false).first;
    ASSERT_FALSE(before.empty());
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_NE(before[i].expected, 0);
      EXPECT_EQ(after[i].expected, -before[i].expected);
    }
  });
}

/// With one rank, the partial GEMM is the whole one.
template <Floating T>
void verify_scatter(bool spoil) {
  run_ranks(1, [&](Rank& rank) {
    ScatterProblem<T> problem(rank, {19, 23, 17}, 7);
    DenseBench bench(problem, options());
    bool wrong = false;
    bench.add("first", Role::kAlgorithm, [&] {
      return [&](cudaStream_t stream) {
        matmul_row_major(rank.cublas(), stream, problem.product(), problem.a(), problem.b(), problem.c());
        if (wrong) CUDA_CHECK(cudaMemsetAsync(problem.c() + 5, 0x44, sizeof(T), stream));
      };
    });
    bench.verify();
    wrong = spoil;
    bench.time();
    EXPECT_NE(bench.times_of("first"), nullptr);
    EXPECT_EQ(bench.times_of("second"), nullptr);
  });
}

TEST_F(DenseBenchTest, ScatteredSumsAreComparedInBothModes) {
  verify_scatter<__half>(false);
  verify_scatter<__nv_bfloat16>(false);
  verify_scatter<float>(false);
  EXPECT_THROW(verify_scatter<__half>(true), WrongResult);
  EXPECT_THROW(verify_scatter<float>(true), WrongResult);
}

TEST_F(DenseBenchTest, WhatCannotRunIsLeftOutAndNothingLeftIsASkip) {
  const auto with = [](bool second) {
    run_ranks(2, [&](Rank& rank) {
      GatherProblem<float> problem(rank, {8, 8, 8}, 1);
      DenseBench bench(problem, options());
      bench.add("first", Role::kAlgorithm, []() -> DenseBench::Enqueue { throw Skip("not today"); });
      if (second) bench.add("second", Role::kAlgorithm, [&] { return product_of(problem, false); });
      bench.add("third", Role::kAlgorithm, []() -> DenseBench::Enqueue { throw UsageError("not chosen"); });
      bench.verify();
    });
  };
  EXPECT_NO_THROW(with(true));
  EXPECT_THROW(with(false), Skip);
}

TEST_F(DenseBenchTest, APartOfTheWorkIsNoAlgorithmThatIsLeft) {
  const auto with = [](bool skips) {
    run_ranks(2, [&](Rank& rank) {
      GatherProblem<float> problem(rank, {8, 8, 8}, 1);
      DenseBench bench(problem, options());
      if (skips)
        bench.add("first", Role::kAlgorithm, []() -> DenseBench::Enqueue { throw Skip("not today"); });
      bench.add("second", Role::kPart, [] { return [](cudaStream_t) {}; });
      bench.verify();
    });
  };
  EXPECT_NO_THROW(with(false));  // selected by --only
  EXPECT_THROW(with(true), Skip);
}

}  // namespace
}  // namespace overlap
