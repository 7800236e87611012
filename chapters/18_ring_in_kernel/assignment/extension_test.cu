// The extension last_block of chapter 18: right in any order of events, and the left neighbour hears once of
// a step, whatever the number of blocks.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::ring_in_kernel {
namespace {

using Form = RingInKernel<__half, tensor_core_gemm::Tile<64, 64, 2>>;
using Problem = GatherProblem<__half>;

// The race detector, too, runs tests that begin with Small.
TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) {
  expect_right<Form, Problem>(3, {450, 3 * 72, 72}, 1, 3);  // six blocks, three of which send
  expect_right<Form, Problem>(4, {3, 4 * 16, 8}, 1, 3);     // fewer rows than ranks
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRight) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    expect_right<Form, Problem>(ranks, {19, 16 * ranks, 72}, 1, 4);
    expect_right<Form, Problem>(ranks, {2, 16 * ranks, 72}, 1, 4);  // fewer rows than ranks
  }
  expect_right<Form, Problem>(2, {150, 2 * 136, 72}, 1, 3);  // six blocks, with a tile each
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
      vgpu::reset();
      vgpu::use_schedule(seed);
      expect_right<Form, Problem>(ranks, {seed % 3 == 0 ? 2 : 19, ranks * 16, 72}, seed, 4);
    }
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_right<Form, Problem>(2, {150, 2 * 136, 72}, seed, 3);  // six blocks, with a tile each
  }
}

__global__ void end_first_step(Arrivals arrivals) { end_step(arrivals, 0); }

TEST_F(OnVirtualGpus, TheNeighbourHearsOnceOfAStep) {
  constexpr unsigned kWordsOfTest = 64, kBlocks = 7;
  const DeviceBuffer<std::uint32_t> here(0, kWordsOfTest), there(0, kWordsOfTest);
  const DeviceBuffer<unsigned> stop(0, 1);
  CUDA_CHECK(cudaMemset(here.data(), 0, here.bytes()));
  CUDA_CHECK(cudaMemset(there.data(), 0, there.bytes()));
  CUDA_CHECK(cudaMemset(stop.data(), 0, stop.bytes()));
  for (std::uint32_t call = 1; call <= 3; ++call) {
    end_first_step<<<kBlocks, 32>>>(Arrivals{here.data(), there.data(), call, stop.data()});
    CUDA_CHECK(cudaGetLastError());
    std::vector<std::uint32_t> words(kWordsOfTest);
    CUDA_CHECK(cudaMemcpy(words.data(), there.data(), there.bytes(), cudaMemcpyDefault));
    EXPECT_EQ(std::accumulate(words.begin(), words.end(), 0U), call)
        << "after " << call << " calls of " << kBlocks << " blocks";
  }
}

}  // namespace
}  // namespace overlap::ring_in_kernel
