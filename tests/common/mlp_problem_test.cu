// The MLP block's data must distinguish a right block from one that skips a step or exchanges rows.
#include "overlap/bench/mlp_problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {
namespace {

constexpr MatmulShape kWhole = {32, 48, 64};  // tokens, feed-forward size, hidden size

template <typename T>
class MlpProblemTest : public testing::Test {};
using Types = testing::Types<__half, __nv_bfloat16, float>;
TYPED_TEST_SUITE(MlpProblemTest, Types);

template <Floating T>
std::vector<double> to_host(const T* data, std::int64_t elements) {
  std::vector<double> values;
  for (const T element : on_host(data, elements)) values.push_back(value_of(element));
  return values;
}

/// Each row and each column has elements of both signs; no two rows and no two columns are equal.
void expect_no_two_alike(const std::vector<double>& matrix, std::size_t columns) {
  std::vector<std::vector<double>> lines(columns);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (i % columns == 0) lines.emplace_back();
    lines[i % columns].push_back(matrix[i]);
    lines.back().push_back(matrix[i]);
  }
  const std::set<std::vector<double>> different(lines.begin(), lines.end());
  EXPECT_EQ(different.size(), lines.size());
  for (const std::vector<double>& line : lines) {
    EXPECT_LT(*std::min_element(line.begin(), line.end()), 0);
    EXPECT_GT(*std::max_element(line.begin(), line.end()), 0);
  }
}

TYPED_TEST(MlpProblemTest, ExactDataUseEveryRowAndColumnWithBothSigns) {
  run_ranks(1, [](Rank& rank) {
    const auto [t, f, h] = kWhole;
    MlpProblem<TypeParam> problem(rank, kWhole, 7);
    problem.fill_exact();
    expect_no_two_alike(to_host(problem.whole_x(), t * h), static_cast<std::size_t>(h));
    expect_no_two_alike(to_host(problem.b().w1, h * f), static_cast<std::size_t>(f));
    expect_no_two_alike(to_host(problem.b().w2, f * h), static_cast<std::size_t>(h));
  });
}

TYPED_TEST(MlpProblemTest, ExactDataHaveRowsOfDifferentNormsAndDifferentGains) {
  run_ranks(1, [](Rank& rank) {
    const auto [t, f, h] = kWhole;
    MlpProblem<TypeParam> problem(rank, kWhole, 7);
    problem.fill_exact();
    std::set<double> scales, gains;
    const std::vector<double> x = to_host(problem.whole_x(), t * h);
    for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(h)) scales.insert(std::abs(x[i]));
    for (const double gain : to_host(problem.b().gain, h)) gains.insert(gain);
    EXPECT_EQ(scales, (std::set<double>{1, 2, 4}));
    EXPECT_EQ(gains, (std::set<double>{-2, -1, 1, 2}));
  });
}

TYPED_TEST(MlpProblemTest, OfAWholeResultEachRankComparesAllRows) {
  run_ranks(3, [](Rank& rank) {
    MlpProblem<TypeParam> problem(rank, {7, 48, 64}, 7);
    for (const bool exact : {true, false}) {
      exact ? problem.fill_exact() : problem.fill_normal();
      problem.poison_result();
      const auto compare = [&] {
        return exact ? problem.compare_exact(false) : problem.compare_normal(false);
      };
      problem.whole_y();
      const Verification all = compare();
      EXPECT_EQ(all.elements, 7 * 64);
      EXPECT_EQ(all.mismatches, 7 * 64);
      problem.c();
      const std::int64_t own = balanced_share(7, 3, rank.id()).size() * 64;
      const Verification part = compare();
      EXPECT_EQ(part.elements, own);
      EXPECT_EQ(part.mismatches, own);
    }
  });
}

}  // namespace
}  // namespace overlap
