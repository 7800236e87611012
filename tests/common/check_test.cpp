#include "overlap/gpu/check.hpp"

#include <gtest/gtest.h>

namespace overlap {
namespace {

TEST(CheckTest, SuccessPasses) { EXPECT_NO_THROW(CUDA_CHECK(cudaSuccess)); }

TEST(CheckTest, FailureSaysWhereWhatAndWhy) {
  int line = 0;
  try {
    line = __LINE__ + 1;
    CUDA_CHECK(cudaErrorInvalidValue);
    FAIL() << "no exception";
  } catch (const CudaError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), cudaErrorInvalidValue);
    EXPECT_EQ(error.call(), "cudaErrorInvalidValue");
    const std::string start =
        "check_test.cpp:" + std::to_string(line) + ": cudaErrorInvalidValue: cudaErrorInvalidValue (";
    EXPECT_EQ(text.substr(0, start.size()), start);
    EXPECT_NE(text.find("), device "), std::string::npos) << text;
  }
}

TEST(CheckTest, TheSentenceNamesTheDeviceIfItIsKnown) {
  const CudaError known(cudaErrorInvalidValue, "call()", "/a/b.cu", 7, 3);
  EXPECT_TRUE(std::string(known.what()).ends_with(", device 3"));
  EXPECT_EQ(known.device(), 3);
  const CudaError unknown(cudaErrorInvalidValue, "call()", "/a/b.cu", 7, -1);
  EXPECT_TRUE(std::string(unknown.what()).ends_with(", device unknown"));
  EXPECT_TRUE(std::string(unknown.what()).starts_with("b.cu:7: call(): "));
}

// The macro's argument may hold commas outside parentheses, such as those of template arguments.
template <int kFirst, int kSecond>
cudaError_t fails_unless_equal() {
  return kFirst == kSecond ? cudaSuccess : cudaErrorInvalidValue;
}

TEST(CheckTest, TakesCommas) {
  CUDA_CHECK(fails_unless_equal<1, 1>());
  EXPECT_THROW(CUDA_CHECK(fails_unless_equal<1, 2>()), CudaError);
}

}  // namespace
}  // namespace overlap
