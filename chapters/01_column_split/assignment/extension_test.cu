// The extension panels of chapter 01: right in any order of events, with room for two panels of eight.
#include <gtest/gtest.h>

#include <vector>

#include "column_split_run.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::column_split {
namespace {

/// The same product twice, the second time before the first one is over.
void expect_right_twice_at_once(int gpus, MatmulShape shape, std::uint64_t seed) {
  ColumnSplitMatmul matmul(gpus, shape);
  PinnedBuffer<int> a(shape.m * shape.k), b(shape.k * shape.n), first(shape.m * shape.n);
  fill_integers({a.begin(), a.end()}, -8, 8, seed);
  fill_integers({b.begin(), b.end()}, -8, 8, seed + 1);
  std::vector<int> expected(first.size());
  reference_matmul(shape, {a.begin(), a.end()}, {b.begin(), b.end()}, expected);
  poison({first.begin(), first.end()});
  PinnedBuffer<int> second(first.size());
  poison({second.begin(), second.end()});
  matmul.run(a.data(), b.data(), first.data());
  matmul.run(a.data(), b.data(), second.data());
  matmul.synchronize();
  for (const PinnedBuffer<int>* c : {&first, &second}) {
    const Verification result = compare_matrices(expected, {c->begin(), c->end()}, shape.n);
    EXPECT_TRUE(result.ok()) << gpus << " GPUs: " << describe(result);
  }
}

TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) {
  for (const int gpus : {1, 2, 3, 4, 8}) {
    expect_right_twice_at_once(gpus, {37, 41, 19}, 1);
    expect_right_twice_at_once(gpus, {3, 5, 7}, 1);  // fewer rows than panels
  }
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    for (const int gpus : {1, 3, 8}) expect_right_twice_at_once(gpus, {37, 41, 19}, seed);
  }
}

/// Bytes that are held on a GPU.
std::int64_t held_on(int device) {
  CUDA_CHECK(cudaSetDevice(device));
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(total - free);
}

TEST_F(OnVirtualGpus, HoldsTwoPanelsOfEight) {
  const MatmulShape shape{800, 480, 64};
  for (const int gpus : {1, 2, 3, 8}) {
    vgpu::reset();
    const ColumnSplitMatmul matmul(gpus, shape);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const std::int64_t columns = shape.n / gpus;
      EXPECT_LE(held_on(gpu), 4 * (shape.k * columns + 2 * (shape.m / 8) * (shape.k + columns)));
    }
  }
}

TEST_F(OnVirtualGpus, MovesTheSameBytes) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int gpus : {1, 2, 3, 8}) {
      vgpu::reset();
      ASSERT_TRUE(run_and_compare(gpus, shape, 1).ok());
      for (int gpu = 0; gpu < gpus; ++gpu) {
        const Cost of_gpu = cost(share_of_columns(shape, gpus, gpu));
        EXPECT_EQ(vgpu::traffic(vgpu::kHost, gpu).bytes, of_gpu.bytes_from_host) << gpu << " of " << gpus;
        EXPECT_EQ(vgpu::traffic(gpu, vgpu::kHost).bytes, of_gpu.bytes_to_host) << gpu << " of " << gpus;
      }
    }
  }
}

}  // namespace
}  // namespace overlap::column_split
