#include "overlap/data/mlp_layer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace overlap {
namespace {

using Floats = std::vector<float>;

TEST(ReferenceNorm, DividesByTheRootOfTheMeanSquareOfEachRow) {
  const Floats x = {0, 8, 0, 0, 2, 2, 2, 2}, gain = {1, 2, 3, -1};
  const std::vector<double> normed = reference_norm<float>(x, gain, 0);  // roots of 16 and of 4
  EXPECT_EQ(normed, (std::vector<double>{0, 4, 0, 0, 1, 2, 3, -1}));
  EXPECT_DOUBLE_EQ(reference_norm<float>(x, gain, 12)[4], 0.5);  // root of 4 + 12
}

TEST(ReferenceNorm, RefusesHalfARow) {
  EXPECT_THROW(reference_norm<float>(Floats{1, 2, 3}, Floats{1, 1}, 0), std::invalid_argument);
  EXPECT_THROW(reference_norm<float>(Floats{1, 2, 3}, Floats{}, 0), std::invalid_argument);
}

TEST(ReferenceMlp, IsTheBlockOfTwoTokens) {
  // The norms are (1, 1) and (1, -1); times W1: (1, -1, 3) and (1, 3, -1); ReLU; times W2; plus X.
  const Floats x = {2, 2, 4, -4}, gain = {1, 1}, w1 = {1, 1, 1, 0, -2, 2}, w2 = {1, 0, 0, 10, 5, 100};
  const std::vector<double> y = reference_mlp<float>(x, {gain, w1, w2, Activation::kRelu, 0});
  EXPECT_EQ(y, (std::vector<double>{2 + 1 + 15, 2 + 300, 4 + 1, -4 + 30}));
}

TEST(ReferenceMlp, RefusesWeightsOfOtherSizes) {
  const Floats x = {1, 1}, gain = {1, 1}, w1 = {1, 1, 1, 1}, w2 = {1, 1};
  EXPECT_THROW(reference_mlp<float>(x, {gain, w1, w2, Activation::kRelu, 0}), std::invalid_argument);
}

TEST(Activated, KnownValues) {
  EXPECT_EQ(activated(Activation::kRelu, -2), 0);
  EXPECT_EQ(activated(Activation::kRelu, 3), 3);
  EXPECT_TRUE(std::isnan(activated(Activation::kRelu, NAN)));
  EXPECT_NEAR(activated(Activation::kGeluErf, 1), 0.8413447460685429, 1e-15);  // the normal distribution at 1
  EXPECT_NEAR(activated(Activation::kGeluErf, -1), -0.15865525393145707, 1e-15);
  EXPECT_NEAR(activated(Activation::kGeluTanh, 1), 0.8411919906082768, 1e-15);
  for (const double v : {0.1, 0.7, 2.5}) {  // both variants: act(v) = act(-v) + v
    for (const Activation gelu : {Activation::kGeluTanh, Activation::kGeluErf}) {
      EXPECT_NEAR(activated(gelu, v), activated(gelu, -v) + v, 1e-15);
    }
  }
}

}  // namespace
}  // namespace overlap
