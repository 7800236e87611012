// The dense bench's report: each number of a row follows from the times of that row, in the report and in the
// table. And the error that a timed result may have.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/mlp_problem.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {.name = "99_test", .variants = {"first", "second", "part", "transfer"}};
constexpr MatmulShape kWhole = {19, 23, 17};

__global__ void spin(int* sink, int rounds) {
  int sum = *sink;
  for (int i = 0; i < rounds; ++i) sum = sum * 3 + i;
  *sink = sum;
}

/// A call whose time grows with each call, and differs by rank, so that no two samples are equal, nor any two
/// of median, least, largest and 99th percentile. The step is some microseconds, because a GPU's clock has a
/// resolution of tens of nanoseconds, and times of equal calls vary.
DenseBench::Enqueue longer_each_time(Rank& rank, int rounds) {
  auto sink = std::make_shared<DeviceBuffer<int>>(rank.device(), 1);
  CUDA_CHECK(cudaMemset(sink->data(), 0, sizeof(int)));
  CUDA_CHECK(cudaDeviceSynchronize());
  return [sink, rounds = rounds + 100 * rank.id()](cudaStream_t stream) mutable {
    rounds += 1000;
    spin<<<1, 1, 0, stream>>>(sink->data(), rounds);
    CUDA_CHECK(cudaGetLastError());
  };
}

/// The lines of a printed table, by the text of the first cell; two spaces or more separate cells.
std::map<std::string, std::vector<std::string>> lines_of(const std::string& text) {
  std::map<std::string, std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells;
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::min(line.find("  ", begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = std::min(line.find_first_not_of(' ', end), line.size());
    }
    if (cells.size() > 1) lines[cells.front()] = {cells.begin() + 1, cells.end()};
  }
  return lines;
}

void expect_report_of(const nlohmann::json& result, const VariantTimes& times, double alone_ms) {
  const std::string role = result["role"];
  const double ms = times.device_ms.median, peak = backend::peak_tflops(ElementType::kF32);
  EXPECT_EQ(result["gpus"], 3);
  EXPECT_EQ(result["device_ms"], ms);
  EXPECT_EQ(result["device_p99_ms"], times.device_ms.p99);
  EXPECT_EQ(result["host_ms"], times.host_ms.median);
  EXPECT_EQ(result["back_to_back_ms"], times.back_to_back_ms);
  const bool product = role == "algorithm" || role == "product" || role == "gemm_only";
  ASSERT_EQ(result.contains("tflops"), product);
  ASSERT_EQ(result.contains("flops"), product);
  ASSERT_EQ(result.contains("bytes"), product);
  ASSERT_EQ(result.contains("ratio_to_gemm_only"), product);
  ASSERT_EQ(result.contains("exposed_ms"), role == "algorithm");
  ASSERT_EQ(result.contains("bus_gb_per_s"), role == "communication_only");
  if (product) {
    const double rate = 2.0 * 19 * 8 * 17 / (ms * 1e9);  // rank 0 holds 8 of 23 columns
    EXPECT_DOUBLE_EQ(result["tflops"], rate);
    EXPECT_EQ(result["flops"], 2.0 * 19 * 8 * 17);
    EXPECT_EQ(result["bytes"], 4 * (19 * 17 + 17 * 8 + 19 * 8));
    EXPECT_DOUBLE_EQ(result["ratio_to_gemm_only"], ms / alone_ms);
    ASSERT_EQ(result.contains("percent_of_peak"), peak > 0);
    EXPECT_DOUBLE_EQ(result.value("percent_of_peak", 0.0), peak > 0 ? 100 * rate / peak : 0);
  }
  EXPECT_DOUBLE_EQ(result.value("exposed_ms", 0.0), role == "algorithm" ? ms - alone_ms : 0);
  // All of A in f32; each rank receives two thirds.
  const double bus = 19 * 17 * 4 * 2 / 3.0 / (ms * 1e6);
  EXPECT_DOUBLE_EQ(result.value("bus_gb_per_s", 0.0), role == "communication_only" ? bus : 0);
}

void expect_line_of(const std::vector<std::string>& cells, const std::string& role, const VariantTimes& times,
                    double alone_ms) {
  const double ms = times.device_ms.median, peak = backend::peak_tflops(ElementType::kF32);
  const double rate = 2.0 * 19 * 8 * 17 / (ms * 1e9);
  const bool product = role != "part" && role != "communication_only";
  EXPECT_EQ(cells, (std::vector<std::string>{fixed(1e3 * ms, 1), product ? fixed(rate, 2) : "-",
                                             product && peak > 0 ? fixed(100 * rate / peak, 1) : "-",
                                             product ? fixed(ms / alone_ms, 3) : "-",
                                             role == "algorithm" ? fixed(1e3 * (ms - alone_ms), 1) : "-",
                                             fixed(1e3 * times.host_ms.median, 1),
                                             fixed(1e3 * times.back_to_back_ms, 1)}));
}

TEST(DenseBenchNumbersTest, EachNumberFollowsFromTheTimesOfItsRow) {
  Options options;
  options.variants = kChapter.variants;
  options.iterations = 110;  // enough that the 99th percentile is not the largest
  options.check = false;
  run_ranks(3, [&](Rank& rank) {
    GatherProblem<float> problem(rank, kWhole, 7);
    DenseBench bench(problem, options);
    const std::vector<std::pair<std::string, Role>> variants = {{"part", Role::kPart},
                                                                {"second", Role::kProduct},
                                                                {"transfer", Role::kCommunication},
                                                                {"first", Role::kAlgorithm}};
    int rounds = 3000;
    for (const auto& [name, role] : variants)
      bench.add(name, role, [&] { return longer_each_time(rank, rounds += 3000); });
    bench.time();
    Report report(kChapter, options);
    bench.save(report);
    rank.barrier();  // no other rank prints
    if (rank.id() != 0) return;
    testing::internal::CaptureStdout();
    bench.print();
    const auto lines = lines_of(testing::internal::GetCapturedStdout());
    const nlohmann::json results = nlohmann::json::parse(report.json())["results"];
    ASSERT_EQ(results.size(), 5U);
    const double alone_ms = bench.times_of("gemm_only")->device_ms.median;
    for (const auto& result : results) {
      const std::string name = result["variant"];
      SCOPED_TRACE(name);
      const VariantTimes* times = bench.times_of(name);
      ASSERT_NE(times, nullptr);
      expect_report_of(result, *times, alone_ms);
      ASSERT_TRUE(lines.contains(name));
      expect_line_of(lines.at(name), result["role"], *times, alone_ms);
    }
    const Summary& once = bench.times_of("second")->device_ms;
    EXPECT_LT(once.min, once.median);
    EXPECT_LT(once.median, once.p99);
    EXPECT_LT(once.p99, once.max);
  });
}

TEST(DenseBenchNumbersTest, OfSeveralAlgorithmsEachTimedResultIsCompared) {
  Options options;
  options.variants = kChapter.variants;
  options.iterations = 1;
  for (const std::string wrong : {"", "first", "second"}) {
    const auto run = [&] {
      run_ranks(2, [&](Rank& rank) {
        GatherProblem<float> problem(rank, kWhole, 7);
        DenseBench bench(problem, options);
        for (const char* name : {"first", "second"}) {
          bench.add(name, Role::kAlgorithm, [&]() -> DenseBench::Enqueue {
            return [&, spoils = name == wrong](cudaStream_t stream) {
              matmul_row_major(rank.cublas(), stream, problem.product(), problem.whole_a(), problem.b(),
                               problem.c());
              if (spoils) CUDA_CHECK(cudaMemsetAsync(problem.c(), 0x44, sizeof(float), stream));
            };
          });
        }
        bench.time(false);
      });
    };
    if (wrong.empty()) {
      EXPECT_NO_THROW(run());
    } else {
      EXPECT_THROW(run(), WrongResult) << wrong;
    }
  }
}

// ---- The error that a timed result may have
// ----------------------------------------------------------------

/// Copies on the rank's stream. A copy from pageable memory may return before the data is on the GPU, and the
/// rank's stream does not wait for the default stream.
void upload(Rank& rank, const std::vector<float>& from, float* to) {
  CUDA_CHECK(
      cudaMemcpyAsync(to, from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice, rank.stream()));
}

/// True if C passes with `error` added to its first element.
template <typename Problem>
bool passes_with(Problem& problem, const std::vector<float>& c, double error) {
  const float first = static_cast<float>(static_cast<double>(c.front()) + error);
  upload(problem.rank(), c, problem.c());
  upload(problem.rank(), std::vector{first}, problem.c());
  return problem.compare_normal(false).ok();
}

TEST(TimedResultsTest, AGatheredProductMayBeOffByItsBoundAndNoMore) {
  run_ranks(2, [](Rank& rank) {
    GatherProblem<float> problem(rank, kWhole, 7);
    problem.fill_normal();
    const MatmulShape product = problem.product();
    matmul_row_major(rank.cublas(), rank.stream(), product, problem.whole_a(), problem.b(), problem.c());
    problem.gemm_only(rank.stream());
    rank.synchronize(rank.stream());
    const std::vector<float> a = on_host(problem.whole_a(), product.m * product.k),
                             b = on_host(problem.b(), product.k * product.n),
                             c = on_host(problem.c(), product.m * product.n);
    const MatmulNorms norms = matmul_norms(product, std::span<const float>(a), std::span<const float>(b));
    const Tolerance one = matmul_tolerance(product.k, ElementType::kF32, ElementType::kF32);
    const double bound =
        2 * (one.magnitude * norms.a_rows[0] * norms.b_columns[0] + one.value * std::abs(c.front()));
    EXPECT_TRUE(passes_with(problem, c, 0.7 * bound));
    EXPECT_TRUE(passes_with(problem, c, -0.7 * bound));
    EXPECT_FALSE(passes_with(problem, c, 1.5 * bound));
    EXPECT_FALSE(passes_with(problem, c, -1.5 * bound));
  });
}

TEST(TimedResultsTest, AScatteredSumMayBeOffByItsBoundAndNoMore) {
  run_ranks(3, [](Rank& rank) {
    ScatterProblem<float> problem(rank, kWhole, 7);
    problem.fill_normal();
    const std::vector<float> c(problem.reference().begin(), problem.reference().end());
    const Tolerance one = matmul_tolerance(kWhole.k, ElementType::kF32, ElementType::kF32),
                    sum = matmul_tolerance(kWhole.k, ElementType::kF32, ElementType::kF32,
                                           {ElementType::kF32, rank.size()});
    const double bound =
        (one.magnitude + sum.magnitude) * problem.norms().a_rows[0] * problem.norms().b_columns[0] +
        (one.value + sum.value) * std::abs(c.front());
    EXPECT_TRUE(passes_with(problem, c, 0.7 * bound));
    EXPECT_FALSE(passes_with(problem, c, 1.5 * bound));
    EXPECT_FALSE(passes_with(problem, c, -1.5 * bound));
  });
}

// The bound has a term for each rounding (mlp_problem.cpp). Here it is a few parts in a million of Y's row.
TEST(TimedResultsTest, AnMlpBlockMayNotBeOffByOnePartInAThousand) {
  run_ranks(2, [](Rank& rank) {
    MlpProblem<float> problem(rank, {6, 128, 64}, 7, Activation::kGeluTanh);
    problem.fill_normal();
    // The expected Y is not available, and only values close to it pass, so bisection finds each element of
    // Y.
    std::vector<float> y(static_cast<std::size_t>(3 * 64), 0.0f);
    upload(rank, y, problem.c());
    const Verification zeros = problem.compare_normal(false);
    ASSERT_FALSE(zeros.first.empty());
    const Mismatch first = zeros.first.front();
    const auto place = static_cast<std::size_t>((first.row % 3) * 64 + first.column);
    const auto wrong_with = [&](double value) {
      y[place] = static_cast<float>(value);
      upload(rank, y, problem.c());
      return problem.compare_normal(false).mismatches;
    };
    EXPECT_EQ(wrong_with(first.expected), zeros.mismatches - 1);
    EXPECT_EQ(wrong_with(first.expected + 1e-5), zeros.mismatches - 1);
    EXPECT_EQ(wrong_with(first.expected + 5e-3), zeros.mismatches);
    EXPECT_EQ(wrong_with(first.expected - 5e-3), zeros.mismatches);
  });
}

// ---- The operands
// ------------------------------------------------------------------------------------------

template <typename Problem>
std::vector<std::vector<float>> operands(Rank& rank, bool exact, std::uint64_t seed) {
  Problem problem(rank, {12, 12, 12}, seed);
  exact ? problem.fill_exact() : problem.fill_normal();
  return {on_host(problem.a(), 144), on_host(problem.b(), 144)};
}

/// Equal operands, or operands that do not depend on the seed, would hide an exchange of the two.
template <typename Problem>
void expect_different_operands() {
  run_ranks(1, [](Rank& rank) {
    for (const bool exact : {true, false}) {
      const auto one = operands<Problem>(rank, exact, 7), other = operands<Problem>(rank, exact, 8);
      EXPECT_NE(one[0], one[1]);
      EXPECT_NE(one[0], other[0]);
      EXPECT_NE(one[1], other[1]);
      std::vector<float> transposed;
      for (std::size_t i = 0; i < 144; ++i) transposed.push_back(one[1][i % 12 * 12 + i / 12]);
      EXPECT_NE(one[0], transposed);
      EXPECT_NE(one[1], transposed) << "B is symmetric";
    }
  });
}

TEST(OperandsTest, OfAGatheredProductAreDifferent) { expect_different_operands<GatherProblem<float>>(); }
TEST(OperandsTest, OfAScatteredSumAreDifferent) { expect_different_operands<ScatterProblem<float>>(); }

TEST(OperandsTest, CollectivesCarryAllOfTheirMatrix) {
  run_ranks(3, [](Rank& rank) {
    EXPECT_EQ(GatherProblem<__half>(rank, kWhole, 7).collective_bytes(), 19 * 17 * 2);
    EXPECT_EQ(ScatterProblem<float>(rank, kWhole, 7).collective_bytes(), 19 * 23 * 4);
    EXPECT_EQ(MlpProblem<float>(rank, kWhole, 7, Activation::kRelu).collective_bytes(), 19 * 17 * 4);
  });
}

}  // namespace
}  // namespace overlap
