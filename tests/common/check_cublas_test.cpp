#include "overlap/gpu/check_cublas.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"

namespace overlap {
namespace {

TEST(CheckCublasTest, SuccessPasses) { EXPECT_NO_THROW(CUBLAS_CHECK(CUBLAS_STATUS_SUCCESS)); }

TEST(CheckCublasTest, FailureSaysWhereWhatAndWhy) {
  int line = 0;
  try {
    line = __LINE__ + 1;
    CUBLAS_CHECK(CUBLAS_STATUS_NOT_SUPPORTED);
    FAIL() << "no exception";
  } catch (const CublasError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.status(), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(error.call(), "CUBLAS_STATUS_NOT_SUPPORTED");
    const std::string start = "check_cublas_test.cpp:" + std::to_string(line) +
                              ": CUBLAS_STATUS_NOT_SUPPORTED: CUBLAS_STATUS_NOT_SUPPORTED "
                              "(the requested functionality is not supported), device ";
    EXPECT_EQ(text.substr(0, start.size()), start);
  }
}

TEST(CheckCublasTest, TheSentenceNamesTheDeviceIfItIsKnown) {
  const CublasError known(CUBLAS_STATUS_INVALID_VALUE, "call()", "/a/b.cu", 7, 3);
  EXPECT_TRUE(std::string(known.what()).ends_with(", device 3"));
  EXPECT_EQ(known.device(), 3);
  const CublasError unknown(CUBLAS_STATUS_INVALID_VALUE, "call()", "/a/b.cu", 7, -1);
  EXPECT_TRUE(std::string(unknown.what()).ends_with(", device unknown"));
  EXPECT_TRUE(std::string(unknown.what()).starts_with("b.cu:7: call(): "));
}

// An invalid handle fails without a GPU.
TEST(CheckCublasTest, AProgramReportsTheCallAndOnVirtualGpusTheReason) {
  std::ostringstream out;
  const int status = run_and_report(
      "program", [] { CUBLAS_CHECK(cublasDestroy(nullptr)); }, out);
  EXPECT_EQ(status, kExitFailed);
  const std::string text = out.str();
  EXPECT_NE(text.find("program: check_cublas_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find("cublasDestroy(nullptr): CUBLAS_STATUS_NOT_INITIALIZED ("), std::string::npos) << text;
  const bool reason = text.find("cublasDestroy: the handle is null") != std::string::npos;
  EXPECT_EQ(reason, std::string(backend::name()) == "virtual") << text;
}

}  // namespace
}  // namespace overlap
