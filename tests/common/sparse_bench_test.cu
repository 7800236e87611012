// The sparse bench verifies its results: a variant that is wrong in a verified call fails.
#include "overlap/bench/sparse_bench.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/program/options.hpp"

namespace overlap {
namespace {

using Bench = SparseBench<std::int32_t, float>;

enum class Fault {
  kSpoilsAnElement,
  kLeavesAnElement,
  kWritesNothing,
  kAddsNothing,  ///< the sums of its last right call come back
  kLosesARow,
  kWritesNan,
};

/// On one rank with sorted, distinct row numbers, the sum equals the input: it is copied, except in faulty
/// calls.
class Copies {
 public:
  Copies(Rank& rank, SparseShape shape, Fault fault, int first, int last)
      : indices_(rank.device(), shape.entries),
        sums_(rank.device(), shape.entries * shape.features),
        values_(rank.device(), shape.entries * shape.features),
        features_(shape.features),
        fault_(fault),
        first_(first),
        last_(last) {}

  SparseRows<std::int32_t, float> run(const std::int32_t* indices, const float* values, std::int64_t entries,
                                      cudaStream_t stream) {
    ++calls_;
    const bool faulty = first_ <= calls_ && calls_ <= last_;
    if (faulty && fault_ == Fault::kWritesNothing) return {indices_.data(), values_.data(), entries};
    CUDA_CHECK(
        cudaMemcpyAsync(indices_.data(), indices, entries * sizeof *indices, cudaMemcpyDefault, stream));
    if (!faulty || fault_ != Fault::kAddsNothing)
      CUDA_CHECK(cudaMemcpyAsync(sums_.data(), values, sums_.bytes(), cudaMemcpyDefault, stream));
    const std::int64_t left = faulty && fault_ == Fault::kLeavesAnElement ? 1 : 0;
    CUDA_CHECK(cudaMemcpyAsync(values_.data(), sums_.data(), (entries * features_ - left) * sizeof *values,
                               cudaMemcpyDefault, stream));
    if (faulty && fault_ == Fault::kSpoilsAnElement)
      CUDA_CHECK(cudaMemsetAsync(values_.data() + entries * features_ - 1, 0x44, sizeof *values, stream));
    if (faulty && fault_ == Fault::kWritesNan)
      CUDA_CHECK(cudaMemsetAsync(values_.data(), 0xFF, entries * features_ * sizeof *values, stream));
    lost_ += faulty && fault_ == Fault::kLosesARow ? 1 : 0;
    return {indices_.data(), values_.data(), entries};
  }
  std::vector<Phase> phases() const { return {}; }
  int lost_rows(cudaStream_t) { return lost_; }

 private:
  DeviceBuffer<std::int32_t> indices_;
  DeviceBuffer<float> sums_, values_;
  std::int64_t features_;
  Fault fault_;
  int first_, last_, calls_ = 0, lost_ = 0;
};

/// True if the bench reports a variant with that fault in calls `first` to `last` as wrong.
bool is_found(Fault fault, int first, int last) {
  const SparseData data({10, 3, 4}, {{1, 4, 5, 9}}, 3);
  Options options;
  options.variants = {"right", "faulty"};
  options.iterations = 2;
  try {
    run_ranks(1, [&](Rank& rank) {
      Bench bench(rank, data, options, RowPattern::kUniform);
      bench.add("right", [&] { return std::make_unique<Copies>(rank, data.shape(), fault, 0, 0); });
      bench.add("faulty", [&] { return std::make_unique<Copies>(rank, data.shape(), fault, first, last); });
      bench.verify();
      bench.time();
    });
  } catch (const WrongResult& wrong) {
    EXPECT_NE(std::string(wrong.what()).find("faulty"), std::string::npos) << wrong.what();
    return true;
  }
  return false;
}

// Calls of each variant: verify() makes two, of which the second is compared; time() makes one to choose the
// number of iterations, and two timed ones, of which the second is compared.
constexpr int kVerified = 2, kTimed = 5;

TEST(SparseBenchTest, OneVerifiedAndOneTimedCallAreCompared) {
  for (const Fault fault : {Fault::kSpoilsAnElement, Fault::kLeavesAnElement, Fault::kWritesNothing,
                            Fault::kAddsNothing, Fault::kWritesNan}) {
    for (int call = 1; call <= kTimed; ++call)
      EXPECT_EQ(is_found(fault, call, call), call == kVerified || call == kTimed) << "call " << call;
  }
}

TEST(SparseBenchTest, WhatEarlierCallsHaveLeftDoesNotPass) {
  for (const Fault fault : {Fault::kWritesNothing, Fault::kAddsNothing}) {
    for (int right = 0; right < kTimed; ++right)
      EXPECT_TRUE(is_found(fault, right + 1, 100)) << right << " right calls";
    EXPECT_FALSE(is_found(fault, kTimed + 1, 100));
  }
}

TEST(SparseBenchTest, RowsThatFoundNoPlaceAreAWrongResult) {
  EXPECT_TRUE(is_found(Fault::kLosesARow, 1, 1));
  EXPECT_TRUE(is_found(Fault::kLosesARow, kTimed, kTimed));
}

}  // namespace
}  // namespace overlap
