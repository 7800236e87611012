// The sparse bench on several ranks: which rank's times it reports, and that it verifies each rank's result.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "overlap/bench/sparse_bench.hpp"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

using Bench = SparseBench<std::int32_t, float>;

const ChapterInfo kChapter = {.name = "99_test", .variants = {"one", "other"}};
constexpr int kRanks = 3, kIterations = 110, kWarmup = 2;  // enough that p99 is not the largest

__global__ void spin(int* sink, int rounds) {
  int sum = *sink;
  for (int i = 0; i < rounds; ++i) sum = sum * 3 + i;
  *sink = sum;
}

/// Made-up phases of a rank in a call; they differ in all calls and on all ranks. The last rank has no rows,
/// and so one phase less.
std::vector<Phase> made_up_phases(int base, int rank, int call) {
  const double map = base + (7 * rank + 5 * call) % 11 + 0.001 * call;
  const double fill = 2 * base + (3 * rank + 4 * call) % 13 + 0.002 * call;
  const double all_reduce = 5 * base + (4 * rank + 9 * call) % 17 + 0.003 * call;
  if (rank == kRanks - 1) return {{"fill", fill}, {"all_reduce", all_reduce}};
  return {{"fill", fill}, {"map", map}, {"all_reduce", all_reduce}};
}

/// Computes no sum. Its time grows with each call, and is longest on the last rank.
class MadeUp {
 public:
  MadeUp(Rank& rank, int base) : rank_(rank), base_(base), sink_(rank.device(), 1) {
    CUDA_CHECK(cudaMemset(sink_.data(), 0, sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  SparseRows<std::int32_t, float> run(const std::int32_t*, const float*, std::int64_t, cudaStream_t stream) {
    ++calls_;
    spin<<<1, 1, 0, stream>>>(sink_.data(), 1000 * base_ * (1 + 4 * rank_.id()) + 10 * calls_);
    CUDA_CHECK(cudaGetLastError());
    return {};
  }
  std::vector<Phase> phases() const { return made_up_phases(base_, rank_.id(), calls_); }
  int lost_rows(cudaStream_t) { return 0; }

 private:
  Rank& rank_;
  int base_, calls_ = 0;
  DeviceBuffer<int> sink_;
};

double middle(std::vector<double> samples) {  // of an even number of samples
  std::sort(samples.begin(), samples.end());
  return (samples[samples.size() / 2 - 1] + samples[samples.size() / 2]) / 2;
}

double part_of(const std::vector<Phase>& phases, const std::string& name) {
  for (const Phase& phase : phases)
    if (phase.name == name) return phase.ms;
  return 0;
}

/// The expected phases by name, computed from the made-up ones; and the skew.
std::map<std::string, double> expected_phases(int base) {
  std::map<std::string, std::vector<double>> samples;
  for (int call = 2 + kWarmup; call < 2 + kWarmup + kIterations; ++call) {  // the first sets their number
    std::map<std::string, std::vector<double>> of_ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<Phase> phases = made_up_phases(base, rank, call);
      for (const char* name : {"fill", "map", "all_reduce"}) of_ranks[name].push_back(part_of(phases, name));
      of_ranks["arrival"].push_back(part_of(phases, "fill") + part_of(phases, "map"));
    }
    for (const char* name : {"fill", "map"}) samples[name].push_back(std::ranges::max(of_ranks[name]));
    samples["all_reduce"].push_back(std::ranges::min(of_ranks["all_reduce"]));
    samples["skew"].push_back(std::ranges::max(of_ranks["arrival"]) - std::ranges::min(of_ranks["arrival"]));
  }
  std::map<std::string, double> expected;
  for (const auto& [name, all] : samples) expected[name] = middle(all);
  return expected;
}

void expect_report_of(const nlohmann::json& result, const VariantTimes& times, int base) {
  for (const auto& [name, ms] : expected_phases(base)) EXPECT_NEAR(result[name + "_ms"], ms, 1e-9) << name;
  EXPECT_EQ(result["host_ms"], times.host_ms.median);
  EXPECT_EQ(result["host_p99_ms"], times.host_ms.p99);
  EXPECT_LT(times.host_ms.median, times.host_ms.p99);
  EXPECT_LT(times.host_ms.p99, times.host_ms.max);
  EXPECT_EQ(times.host_ms.samples, kIterations) << "the calls before are not counted";
  EXPECT_EQ(result["calls"], kIterations);
  EXPECT_EQ(result["gpus"], kRanks);
  EXPECT_EQ(result["rows_of_ranks"], 5);
  EXPECT_EQ(result["global_rows"], 4);
}

void expect_line_of(const std::string& table, const std::string& name, const VariantTimes& times, int base) {
  std::map<std::string, double> ms = expected_phases(base);
  std::istringstream line(table.substr(table.find("\n" + name) + 1));
  std::vector<std::string> cells(7);
  for (std::string& cell : cells) line >> cell;
  EXPECT_EQ(cells, (std::vector<std::string>{name, fixed(times.host_ms.median, 3), fixed(ms["fill"], 3),
                                             fixed(ms["map"], 3), fixed(ms["all_reduce"], 3),
                                             fixed(ms["skew"], 3), std::to_string(kIterations)}));
}

TEST(SparseBenchNumbersTest, EachNumberIsThatOfItsVariantOverAllRanks) {
  const SparseData data({10, 3, 2}, {{1, 4}, {4, 5, 9}, {}}, 3);
  Options options;
  options.variants = kChapter.variants;
  options.iterations = kIterations;
  options.warmup = kWarmup;
  options.check = false;
  run_ranks(kRanks, [&](Rank& rank) {
    Bench bench(rank, data, options, RowPattern::kUniform);
    bench.add("one", [&] { return std::make_unique<MadeUp>(rank, 1); });
    bench.add("other", [&] { return std::make_unique<MadeUp>(rank, 3); });
    bench.time();
    for (const double other : rank.exchange(bench.times_of("one")->host_ms.median))
      EXPECT_EQ(other, bench.times_of("one")->host_ms.median) << "the slowest rank's time is everybody's";
    Report report(kChapter, options);
    bench.save(report);
    rank.barrier();  // no other rank prints
    if (rank.id() != 0) return;
    testing::internal::CaptureStdout();
    bench.print();
    const std::string table = testing::internal::GetCapturedStdout();
    EXPECT_NE(table.find("N = 5 rows of single ranks, G = 4 different ones, d = N / G = 1.250"),
              std::string::npos);
    const nlohmann::json results = nlohmann::json::parse(report.json())["results"];
    ASSERT_EQ(results.size(), 2U);
    for (const auto& result : results) {
      const std::string name = result["variant"];
      SCOPED_TRACE(name);
      expect_report_of(result, *bench.times_of(name), name == "one" ? 1 : 3);
      expect_line_of(table, name, *bench.times_of(name), name == "one" ? 1 : 3);
    }
  });
}

/// Only rank 0 has rows, so the sum equals its rows; on one rank the last element is corrupted.
class CopiesOfRank0 {
 public:
  CopiesOfRank0(Rank& rank, SparseShape shape, bool spoils)
      : rank_(rank),
        shape_(shape),
        spoils_(spoils),
        indices_(rank.device(), shape.entries),
        values_(rank.device(), shape.entries * shape.features) {}

  SparseRows<std::int32_t, float> run(const std::int32_t* indices, const float* values, std::int64_t,
                                      cudaStream_t stream) {
    struct Gradient {
      const std::int32_t* indices;
      const float* values;
    };
    const Gradient all = rank_.exchange(Gradient{indices, values}).front();
    CUDA_CHECK(cudaMemcpyAsync(indices_.data(), all.indices, indices_.bytes(), cudaMemcpyDefault, stream));
    CUDA_CHECK(cudaMemcpyAsync(values_.data(), all.values, values_.bytes(), cudaMemcpyDefault, stream));
    if (spoils_)
      CUDA_CHECK(cudaMemsetAsync(values_.data() + values_.size() - 1, 0x44, sizeof *values, stream));
    return {indices_.data(), values_.data(), shape_.entries};
  }
  std::vector<Phase> phases() const { return {}; }
  int lost_rows(cudaStream_t) { return 0; }

 private:
  Rank& rank_;
  SparseShape shape_;
  bool spoils_;
  DeviceBuffer<std::int32_t> indices_;
  DeviceBuffer<float> values_;
};

TEST(SparseBenchNumbersTest, TheResultOfEachRankIsCompared) {
  const SparseData data({10, 3, 4}, {{1, 4, 5, 9}, {}, {}}, 3);
  Options options;
  options.variants = kChapter.variants;
  options.iterations = 1;
  for (int wrong = -1; wrong < kRanks; ++wrong) {
    const auto run = [&](bool times) {
      run_ranks(kRanks, [&](Rank& rank) {
        Bench bench(rank, data, options, RowPattern::kUniform);
        bench.add("one",
                  [&] { return std::make_unique<CopiesOfRank0>(rank, data.shape(), rank.id() == wrong); });
        times ? bench.time() : bench.verify();
      });
    };
    for (const bool times : {false, true}) {
      if (wrong < 0) {
        EXPECT_NO_THROW(run(times));
      } else {
        EXPECT_THROW(run(times), WrongResult) << "rank " << wrong;
      }
    }
  }
}

}  // namespace
}  // namespace overlap
