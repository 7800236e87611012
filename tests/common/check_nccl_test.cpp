#include "overlap/gpu/check_nccl.hpp"

#include <gtest/gtest.h>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

TEST(CheckNcclTest, SuccessPasses) { EXPECT_NO_THROW(NCCL_CHECK(ncclSuccess)); }

TEST(CheckNcclTest, FailureSaysWhereWhatAndWhy) {
  int line = 0;
  try {
    line = __LINE__ + 1;
    NCCL_CHECK(ncclInvalidArgument);
    FAIL() << "no exception";
  } catch (const NcclError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ncclInvalidArgument);
    EXPECT_EQ(error.call(), "ncclInvalidArgument");
    const std::string start =
        "check_nccl_test.cpp:" + std::to_string(line) + ": ncclInvalidArgument: invalid argument";
    EXPECT_EQ(text.substr(0, start.size()), start);
    EXPECT_NE(text.find(", device "), std::string::npos) << text;
  }
}

TEST(CheckNcclTest, NcclsOwnSentenceIsItsDetail) {
  ncclUniqueId id{};
  ncclComm_t communicator = nullptr;
  try {
    NCCL_CHECK(ncclCommInitRank(&communicator, 2, id, 5));  // rank 5 of 2 does not exist
    FAIL() << "no exception";
  } catch (const NcclError& error) {
    EXPECT_NE(error.detail().find(ncclGetLastError(nullptr)), std::string::npos) << error.detail();
    if (backend::modelled_time()) {
      EXPECT_EQ(error.detail(), "ncclCommInitRank: there is no rank 5 of 2");
    }
  }
}

TEST(CheckNcclTest, TheSentenceNamesTheDeviceIfItIsKnown) {
  const NcclError known(ncclInvalidUsage, "call()", "/a/b.cu", 7, 3);
  EXPECT_TRUE(std::string(known.what()).ends_with(", device 3"));
  EXPECT_EQ(known.device(), 3);
  const NcclError unknown(ncclInvalidUsage, "call()", "/a/b.cu", 7, -1);
  EXPECT_TRUE(std::string(unknown.what()).ends_with(", device unknown"));
  EXPECT_TRUE(std::string(unknown.what()).starts_with("b.cu:7: call(): "));
}

// The macro's argument may hold commas outside parentheses, such as those of template arguments.
template <int kFirst, int kSecond>
ncclResult_t nccl_fails_unless_equal() {
  return kFirst == kSecond ? ncclSuccess : ncclInvalidUsage;
}

TEST(CheckNcclTest, TakesCommas) {
  NCCL_CHECK(nccl_fails_unless_equal<1, 1>());
  EXPECT_THROW(NCCL_CHECK(nccl_fails_unless_equal<1, 2>()), NcclError);
}

}  // namespace
}  // namespace overlap
