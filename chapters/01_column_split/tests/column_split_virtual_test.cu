// Chapter 01 on virtual GPUs: right in any order of events, and moving just the bytes of its cost card.
#include <gtest/gtest.h>

#include "column_split_run.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::column_split {
namespace {

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    for (const int gpus : {1, 3, 8}) {
      const Verification result = run_and_compare(gpus, {19, 37, 11}, seed);
      ASSERT_TRUE(result.ok()) << gpus << " GPUs: " << describe(result);
    }
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { EXPECT_TRUE(run_and_compare(4, {33, 40, 8}, 1).ok()); });
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int gpus : {1, 2, 3, 8}) {
      vgpu::reset();
      ASSERT_TRUE(run_and_compare(gpus, shape, 1).ok());
      for (int gpu = 0; gpu < 8; ++gpu) {
        const Cost of_gpu = gpu < gpus ? cost(share_of_columns(shape, gpus, gpu)) : Cost{};
        const vgpu::Traffic in = vgpu::traffic(vgpu::kHost, gpu), out = vgpu::traffic(gpu, vgpu::kHost);
        EXPECT_EQ(in.bytes, of_gpu.bytes_from_host) << "GPU " << gpu << " of " << gpus;
        EXPECT_EQ(out.bytes, of_gpu.bytes_to_host) << "GPU " << gpu << " of " << gpus;
        EXPECT_EQ(in.copies + out.copies, kCopies * of_gpu.launches) << "GPU " << gpu << " of " << gpus;
        for (int other = 0; other < 8; ++other) EXPECT_EQ(vgpu::traffic(gpu, other).bytes, 0u);
      }
    }
  }
}

TEST_F(OnVirtualGpus, MoreGpusAreFasterInTheModel) {
  const MatmulShape shape{128, 256, 64};
  const auto slowest = [&](int gpus) {
    vgpu::reset();
    ColumnSplitMatmul matmul(gpus, shape);
    EXPECT_TRUE(run_and_compare(matmul, shape, 1).ok());
    float milliseconds = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) milliseconds = std::max(milliseconds, matmul.kernel_ms(gpu));
    return milliseconds;
  };
  const float one = slowest(1), two = slowest(2), four = slowest(4);
  EXPECT_LT(two, one);
  EXPECT_LT(four, two);
}

TEST_F(OnVirtualGpus, RefusesAProductThatDoesNotFitTheMemory) {
  // More than 2^31 elements: addressed in 64 bits, and too much for a GPU of 1 GiB.
  try {
    ColumnSplitMatmul matmul(1, {65537, 32769, 1});
    FAIL() << "8.6 GB fit into 1 GiB";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
  }
}

}  // namespace
}  // namespace overlap::column_split
