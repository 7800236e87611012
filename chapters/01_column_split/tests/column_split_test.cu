// Chapter 01 on any GPUs: right for every number of GPUs and any sizes.
#include <gtest/gtest.h>

#include <random>

#include "column_split_run.hpp"

namespace overlap::column_split {
namespace {

int gpus_here() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class OnGpus : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > gpus_here())
      GTEST_SKIP() << "needs " << GetParam() << " GPUs, there are " << gpus_here();
  }
};
INSTANTIATE_TEST_SUITE_P(ColumnSplit, OnGpus, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnGpus, IsRightOnEvenAndUnevenSizes) {
  for (const MatmulShape shape : {MatmulShape{32, 64, 16}, MatmulShape{33, 37, 29}, MatmulShape{17, 100, 5},
                                  MatmulShape{1, 129, 64}, MatmulShape{100, 1, 3}, MatmulShape{64, 48, 1}}) {
    const Verification result = run_and_compare(GetParam(), shape, 1);
    EXPECT_TRUE(result.ok()) << shape.m << " x " << shape.n << " x " << shape.k << ": " << describe(result);
    EXPECT_EQ(result.elements, shape.m * shape.n);
  }
}

TEST_P(OnGpus, IsRightWithFewerColumnsThanGpus) {
  for (std::int64_t columns = 1; columns <= GetParam(); ++columns) {
    const Verification result = run_and_compare(GetParam(), {3, columns, 2}, columns);
    EXPECT_TRUE(result.ok()) << columns << " columns: " << describe(result);
  }
}

TEST_P(OnGpus, IsRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of GPUs.
  const unsigned seed = 20261121 + GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto size = [&random] { return static_cast<std::int64_t>(1 + random() % 70); };
  for (int i = 0; i < 40; ++i) {
    const MatmulShape shape{size(), size(), size()};
    const Verification result = run_and_compare(GetParam(), shape, seed + i);
    ASSERT_TRUE(result.ok()) << shape.m << " x " << shape.n << " x " << shape.k << ": " << describe(result);
  }
}

TEST_P(OnGpus, MayRunAgainAndAgain) {
  const MatmulShape shape{20, 50, 10};
  ColumnSplitMatmul matmul(GetParam(), shape);
  for (int i = 0; i < 5; ++i) {
    const Verification result = run_and_compare(matmul, shape, 100 * i);
    EXPECT_TRUE(result.ok()) << "run " << i << ": " << describe(result);
  }
}

TEST_P(OnGpus, TimesEachGpuThatHasColumns) {
  const MatmulShape shape{64, 3, 256};
  ColumnSplitMatmul matmul(GetParam(), shape);
  ASSERT_TRUE(run_and_compare(matmul, shape, 1).ok());
  for (int gpu = 0; gpu < GetParam(); ++gpu) {
    if (matmul.columns(gpu).empty()) {
      EXPECT_EQ(matmul.kernel_ms(gpu), 0.0f) << "GPU " << gpu;
    } else {
      EXPECT_GT(matmul.kernel_ms(gpu), 0.0f) << "GPU " << gpu;
    }
  }
}

TEST_P(OnGpus, SharesCoverAllColumnsOnce) {
  const MatmulShape shape{1, 29, 1};
  ColumnSplitMatmul matmul(GetParam(), shape);
  std::int64_t next = 0;
  for (int gpu = 0; gpu < GetParam(); ++gpu) {
    EXPECT_EQ(matmul.columns(gpu).begin, next);
    next = matmul.columns(gpu).end;
  }
  EXPECT_EQ(next, shape.n);
}

TEST(ColumnSplitRefuses, ShapesThatCannotBe) {
  EXPECT_THROW(ColumnSplitMatmul(1, {0, 1, 1}), UsageError);
  EXPECT_THROW(ColumnSplitMatmul(1, {1, -1, 1}), UsageError);
  EXPECT_THROW(ColumnSplitMatmul(1, {1, 1, 0}), UsageError);
  EXPECT_THROW(ColumnSplitMatmul(1, {std::int64_t{65535} * 16 + 1, 1, 1}), UsageError);
  EXPECT_THROW(ColumnSplitMatmul(1, {1, std::int64_t{1} << 29, 1}), UsageError);
  EXPECT_THROW(ColumnSplitMatmul(1, {1 << 20, std::int64_t{1} << 42, 1}), UsageError);  // 2^64 bytes
}

TEST(ColumnSplitRefuses, MoreGpusThanThereAre) {
  EXPECT_THROW(ColumnSplitMatmul(gpus_here() + 1, {4, 64, 4}), CudaError);
  cudaGetLastError();
}

TEST(ColumnSplitCost, CountsBytesOfBothDirections) {
  // 4 x 3 times 3 x 5 on 2 GPUs: 3 and 2 columns.
  const MatmulShape share = share_of_columns({4, 5, 3}, 2, 0);
  EXPECT_EQ(share.multiply_adds(), 4.0 * 3 * 3);
  const Cost first = cost(share);
  EXPECT_EQ(first.bytes_from_host, 4 * (4 * 3 + 3 * 3));
  EXPECT_EQ(first.bytes_to_host, 4 * (4 * 3));
  const Cost second = cost(share_of_columns({4, 5, 3}, 2, 1));
  EXPECT_EQ(second.bytes_from_host, 4 * (4 * 3 + 3 * 2));
  EXPECT_EQ(second.bytes_to_host, 4 * (4 * 2));
  EXPECT_EQ(cost(share_of_columns({4, 1, 3}, 2, 1)),
            Cost{});  // a single column, of which the other GPU is the owner
}

TEST(ColumnSplitCost, IsThePagesCostCard) {
  for (const int gpu : {0, 1}) {
    const MatmulShape share = share_of_columns({4096, 8192, 1024}, 2, gpu);
    EXPECT_EQ(cost(share).bytes_from_host, 33'554'432);
    EXPECT_EQ(cost(share).bytes_to_host, 67'108'864);
    EXPECT_EQ(cost(share).messages, 0);
    EXPECT_EQ(cost(share).launches, 1);
    EXPECT_EQ(share.multiply_adds(), 17'179'869'184.0);
  }
}

TEST(ColumnSplitCost, AddressesBeyondTwoToTheThirtyOne) {
  // The bytes of a GEMM with 65537 x 32769 elements, whose number exceeds 31 bits.
  EXPECT_EQ(cost({65537, 32769, 1}).bytes_to_host, std::int64_t{65537} * 32769 * 4);
}

}  // namespace
}  // namespace overlap::column_split
