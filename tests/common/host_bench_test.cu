// The bench without ranks verifies its results: an algorithm that is wrong in a verified call fails.
#include "overlap/bench/host_bench.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "overlap/data/verify.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

constexpr MatmulShape kShape = {5, 7, 3};

enum class Fault {
  kNone,
  kWritesNothing,      ///< C keeps what it has
  kMultipliesNothing,  ///< what the call before has left on the GPU comes back
  kSpoilsAnElement,
  kLeavesAnElement,  ///< the last one keeps what it has
};

/// The fault of all algorithms in a test, in calls `first` to `last`.
struct Faulty {
  Fault fault = Fault::kNone;
  int first = 0, last = 0;
};
Faulty faulty;

/// A GEMM on the CPU; `on_gpu_` stands in for the GPU's C.
class Product {
 public:
  Product(int gpus, MatmulShape shape) : gpus_(gpus), shape_(shape), on_gpu_(shape.m * shape.n) {}

  void run(const int* a, const int* b, int* c) {
    ++calls_;
    const Fault fault = faulty.first <= calls_ && calls_ <= faulty.last ? faulty.fault : Fault::kNone;
    if (fault != Fault::kMultipliesNothing)
      reference_matmul(shape_, std::span(a, shape_.m * shape_.k), std::span(b, shape_.k * shape_.n),
                       std::span<int>(on_gpu_));
    const int left = fault == Fault::kLeavesAnElement ? 1 : 0;
    if (fault != Fault::kWritesNothing) std::copy(on_gpu_.begin(), on_gpu_.end() - left, c);
    if (fault == Fault::kSpoilsAnElement) c[on_gpu_.size() - 1] += 1;
  }
  void synchronize() {}
  int gpus() const { return gpus_; }
  Range columns(int gpu) const { return balanced_share(shape_.n, gpus_, gpu); }
  float kernel_ms(int gpu) const { return static_cast<float>(1 + gpu + 10 * calls_); }

 private:
  int gpus_;
  MatmulShape shape_;
  std::vector<int> on_gpu_;
  int calls_ = 0;
};

Options options() {
  Options options;
  options.variants = {"one_gpu", "all_gpus"};
  options.iterations = 2;
  return options;
}

/// The report of a run in which all variants have this fault.
nlohmann::json report_of(const Faulty& wrong, const Options& options) {
  faulty = wrong;
  const ChapterInfo chapter = {.name = "99_test"};
  Report report(chapter, options);
  HostBench bench(kShape, 1, options);
  bench.add_algorithm<Product>("one_gpu", 1);
  bench.add_algorithm<Product>("all_gpus", 3);
  testing::internal::CaptureStdout();
  try {
    bench.run(report);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  testing::internal::GetCapturedStdout();
  return nlohmann::json::parse(report.json())["results"];
}

bool is_found(const Faulty& wrong) {
  try {
    report_of(wrong, options());
  } catch (const WrongResult&) {
    return true;
  }
  return false;
}

// Calls of each variant: verify() makes one, which is compared; time() makes one to choose the number of
// iterations, and two timed ones, of which the second is compared.
constexpr int kVerified = 1, kTimed = 4;

TEST(HostBenchTest, OneVerifiedAndOneTimedCallAreCompared) {
  EXPECT_FALSE(is_found({}));
  for (const Fault fault :
       {Fault::kWritesNothing, Fault::kMultipliesNothing, Fault::kSpoilsAnElement, Fault::kLeavesAnElement}) {
    for (int call = 1; call <= kTimed; ++call)
      EXPECT_EQ(is_found({fault, call, call}), call == kVerified || call == kTimed) << "call " << call;
  }
}

TEST(HostBenchTest, WhatEarlierCallsHaveLeftDoesNotPass) {
  for (const Fault fault : {Fault::kWritesNothing, Fault::kMultipliesNothing}) {
    for (int right = 0; right < kTimed; ++right)
      EXPECT_TRUE(is_found({fault, right + 1, 100})) << "right in " << right << " calls";
    EXPECT_FALSE(is_found({fault, kTimed + 1, 100}));
  }
}

TEST(HostBenchTest, WithoutCheckNothingIsCompared) {
  Options unchecked = options();
  unchecked.check = false;
  EXPECT_NO_THROW(report_of({Fault::kSpoilsAnElement, 1, 100}, unchecked));
  Options corrupt = options();
  corrupt.corrupt = true;
  EXPECT_THROW(report_of({}, corrupt), WrongResult);
}

TEST(HostBenchTest, EachNumberIsThatOfItsVariant) {
  Options three = options();
  three.iterations =
      3;  // calls 3, 4 and 5: the median of GPU g is 1 + g + 40, and the slowest is the last one
  const nlohmann::json results = report_of({}, three);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0]["variant"], "one_gpu");
  EXPECT_EQ(results[0]["gpus"], 1);
  EXPECT_EQ(results[0]["kernel_ms"], 41);
  EXPECT_EQ(results[1]["variant"], "all_gpus");
  EXPECT_EQ(results[1]["gpus"], 3);
  EXPECT_EQ(results[1]["kernel_ms"], 43);
  EXPECT_EQ(results[1]["kernel_p99_ms"], 53);
  EXPECT_EQ(results[1]["kernel_ms_gpu0"], 41);
  EXPECT_EQ(results[1]["kernel_ms_gpu2"], 43);
  EXPECT_LE(results[1]["end_to_end_ms"], results[1]["end_to_end_p99_ms"]);
}

}  // namespace
}  // namespace overlap
