// wgmma beyond its documentation: when it completes, and modelled costs.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cuda/ptx>
#include <set>
#include <vector>

#include "overlap/gpu/wgmma.hpp"
#include "phases.cuh"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

namespace ptx = cuda::ptx;
namespace wgmma = overlap::wgmma;
using wgmma::Swizzle;
using WgmmaTest = VirtualTest;
constexpr auto kK = wgmma::Major::kK;

// A [64, 16] and B [16, 64], both K-major without a swizzle: consecutive chunks of 8 elements along k.
constexpr int kOperand = 64 * wgmma::kDepth;

__device__ inline wgmma::Descriptor plain(const __half* operand) {
  return wgmma::describe<kK, Swizzle::kNone>(operand, kOperand, 128);
}
/// Sets every element to `value`, visible to wgmma.
__device__ inline void fill(__half* tiles, float value) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kOperand; i += static_cast<int>(blockDim.x))
    tiles[i] = __half(value);
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
}

/// `seen`: D right after the issue, and after the wait; operands change in between (a planted error).
__global__ void look_at_product(int* seen) {
  alignas(128) __shared__ __half tiles[2 * kOperand];
  fill(tiles, 1);
  wgmma::Fragment<64> d;
  d.value[0] = -5;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, plain(tiles), plain(tiles + kOperand), false);
  wgmma::commit();
  __syncthreads();
  const float early = d.value[0];
  fill(tiles, 2);
  wgmma::wait<0>(d);
  if (threadIdx.x == 0) {
    seen[0] = static_cast<int>(early);
    seen[1] = static_cast<int>(d.value[0]);
  }
}

std::vector<int> seen_of_product() {
  int* memory = device_words(2, 0);
  look_at_product<<<1, 128>>>(memory);
  return {word(memory), word(memory + 1)};
}

TEST_F(WgmmaTest, ProductsAreDoneAtTheWait) { EXPECT_EQ(seen_of_product(), (std::vector<int>{-5, 64})); }

TEST_F(WgmmaTest, WithASeedProductsAreDoneAtAnyTime) {
  const auto all = in_random_orders(seen_of_product);
  EXPECT_TRUE(all.contains({-5, 64})) << "late";
  EXPECT_TRUE(all.contains({16, 16})) << "early: its operands are read then, too";
}

__global__ void look_at_fresh(int* seen) {
  wgmma::Fragment<64> d;
  bool all = true;
  for (const float value : d.value) all = all && value != value;
  seen[threadIdx.x] = all ? 1 : 0;
}

TEST_F(WgmmaTest, AFreshFragmentIsNoNumber) {
  int* memory = device_words(2, 0);
  look_at_fresh<<<1, 2>>>(memory);
  EXPECT_EQ(word(memory) + word(memory + 1), 2);
}

__global__ void elected_lane(int* lane) {
  if (wgmma::elect_one()) *lane = static_cast<int>(threadIdx.x);
}

TEST_F(WgmmaTest, TheSeedChoosesTheElectedLane) {
  std::set<int> lanes;
  for (unsigned int seed = 0; seed <= 20; ++seed) {
    start_over(seed);
    int* lane = device_words(1, -1);
    elected_lane<<<1, 32>>>(lane);
    if (seed == 0) {
      EXPECT_EQ(word(lane), 0);
    }
    lanes.insert(word(lane));
  }
  EXPECT_GT(lanes.size(), 5u);
}

// ---- the model -------------------------------------------------------------------------------------------
constexpr int kMaxStages = 4, kTiles = 24, kTileBytes = 2 * 64 * (64 + 64);

/// Loads tiles through a ring of `stages`, one thread each, and multiplies them; at most one step is in
/// flight.
__global__ void pipeline_of(const int* memory, int* sink, int stages) {
  __shared__ std::uint64_t full[kMaxStages], empty[kMaxStages];
  alignas(1024) extern __shared__ std::byte ring[];
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 1);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x >= wgmma::kThreads) {
    if (threadIdx.x != wgmma::kThreads) return;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int s = tile % stages;
      phases::await_phase(&empty[s], tile / stages + 1);
      phases::expect_bytes(&full[s], kTileBytes);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring + s * kTileBytes, memory, kTileBytes,
                         &full[s]);
    }
    return;
  }
  wgmma::Fragment<64> d;
  for (int tile = 0; tile < kTiles; ++tile) {
    const int s = tile % stages;
    phases::await_phase(&full[s], tile / stages);
    const auto a = wgmma::describe<kK, Swizzle::k128>(ring + s * kTileBytes, 0, 1024);
    const auto b = wgmma::describe<kK, Swizzle::k128>(ring + s * kTileBytes + kTileBytes / 2, 0, 1024);
    wgmma::fence();
    for (int k = 0; k < 4; ++k)
      wgmma::mma<__half, kK, kK>(d, wgmma::advance(a, 32 * k), wgmma::advance(b, 32 * k), tile + k > 0);
    wgmma::commit();
    wgmma::wait<0>(d);
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&empty[s]);
  }
  if (d.value[0] == 1) *sink = 1;
}

TEST_F(WgmmaTest, OneStageIsSlowerThanFour) {
  vgpu::use_machine("h100-nvlink");
  int* memory = device_room(kTileBytes / sizeof(int));
  require(cudaMemset(memory, 0, kTileBytes));
  constexpr int kShared = kMaxStages * kTileBytes;
  require(cudaFuncSetAttribute(pipeline_of, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  const cudaStream_t stream = new_stream();
  const auto time = [&](int stages) {
    return elapsed(stream, [&] { pipeline_of<<<1, 256, kShared, stream>>>(memory, memory, stages); });
  };
  const float one = time(1), four = time(4);
  EXPECT_GT(one, 1.2f * four);
  EXPECT_GT(one, kTiles * 0.7e-3f) << "milliseconds: a latency of 0.7 us for each tile";
}

/// One wgmma after another, on uninitialised shared memory.
__global__ void products_of(int* sink, int count) {
  alignas(1024) __shared__ std::byte tiles[2 * 64 * 16 + 2 * 256 * 16];
  wgmma::Fragment<256> d;
  const auto a = wgmma::describe<kK, Swizzle::k32>(tiles, 0, 256);
  const auto b = wgmma::describe<kK, Swizzle::k32>(tiles + 2 * 64 * 16, 0, 256);
  wgmma::fence();
  for (int i = 0; i < count; ++i) wgmma::mma<__half, kK, kK>(d, a, b, i > 0);
  wgmma::commit();
  wgmma::wait<0>(d);
  if (d.value[0] == 1) *sink = 1;
}

// On the small machine 1.2 TFLOP/s and 8 SMs: 3.5 us for m64n256k16.
TEST_F(WgmmaTest, AProductTakesItsShareOfTheTensorRate) {
  int* sink = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  const auto time = [&](int blocks, int threads, int count) {
    return elapsed(stream, [&] { products_of<<<blocks, threads, 0, stream>>>(sink, count); });
  };
  const float ideal = 1e3f * 64 * 256 * 16 * 2 * 8 / 1.2e12f, few = time(1, 128, 2);
  EXPECT_NEAR(time(1, 128, 12) - few, 10 * ideal, ideal);
  EXPECT_NEAR(time(1, 256, 6) - few, 10 * ideal, 2 * ideal) << "two warpgroups take turns";
  EXPECT_NEAR(time(8, 128, 12), time(1, 128, 12), ideal) << "each multiprocessor has its own";
  EXPECT_GT(time(16, 128, 12), 1.8f * time(8, 128, 12)) << "blocks of one share them";
}

}  // namespace
}  // namespace virtual_only
