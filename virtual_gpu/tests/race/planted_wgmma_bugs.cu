// Kernels that each misuse wgmma, store_matrix or a named barrier, and the same kernels without the bug.
// Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/ptx>
#include <stdexcept>
#include <string>

#include "hopper_test.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/wgmma.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;
namespace ptx = cuda::ptx;
namespace wgmma = overlap::wgmma;
using ptx::space_cluster, ptx::space_global, ptx::space_shared;
using semantics::await_phase, semantics::expect_bytes, semantics::start_barrier;
using wgmma::Swizzle;
constexpr auto kK = wgmma::Major::kK;

// A [64, 16] and B [16, 64], both K-major without a swizzle: 8 rows of 16 bytes are an atom.
constexpr int kSide = 64, kOperand = kSide * wgmma::kDepth;
constexpr std::uint32_t kOperandBytes = kOperand * sizeof(__half), kBothBytes = 2 * kOperandBytes;
constexpr int kRounds = 3;

using Kernel = void (*)(__half* from, float* to, bool fixed);
using Fragment = wgmma::Fragment<kSide>;

/// Runs the kernel on two independent streams.
void run(Kernel kernel, bool fixed) {
  struct Setting {
    DeviceBuffer<__half> from{0, 2 * kOperand};
    DeviceBuffer<float> to{0, kSide* kSide};
    Stream stream{0};
  } settings[2];
  for (Setting& s : settings) {
    cudaMemsetAsync(s.from.data(), 0, s.from.bytes(), s.stream);
    kernel<<<1, wgmma::kThreads, 0, s.stream>>>(s.from.data(), s.to.data(), fixed);
  }
  if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("the kernels failed");
}

__device__ inline wgmma::Descriptor plain(const __half* operand) {
  return wgmma::describe<kK, Swizzle::kNone>(operand, kOperandBytes / 2, 128);
}

struct Operands {
  __half* tiles;  // in shared memory
  wgmma::Descriptor a, b;
};
/// Copies both operands to shared memory, and waits for the copy.
__device__ inline Operands load(const __half* from) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ __half tiles[2 * kOperand];
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    expect_bytes(&full, kBothBytes);
    ptx::cp_async_bulk(space_cluster, space_global, tiles, from, kBothBytes, &full);
  }
  await_phase(&full, 0);
  return {tiles, plain(tiles), plain(tiles + kOperand)};
}

// ---- wgmma_wait: D is read before the wgmma has completed ------------------------------------------------
__global__ void read_early(__half* from, float* to, bool fixed) {
  const auto [tiles, a, b] = load(from);
  Fragment d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, b, false);  // @wgmma_wait
  wgmma::commit();
  if (fixed) wgmma::wait<0>(d);
  to[threadIdx.x] = d.value[0];  // @wgmma_wait
  wgmma::wait<0>(d);
}
void wgmma_wait(bool fixed) { run(read_early, fixed); }

// ---- wgmma_group: the wait leaves the group in flight whose result is read next ---------------------------
__global__ void wait_for_older(__half* from, float* to, bool fixed) {
  const auto [tiles, a, b] = load(from);
  Fragment older, newer;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(older, a, b, false);
  wgmma::commit();
  wgmma::mma<__half, kK, kK>(newer, a, b, false);  // @wgmma_group
  wgmma::commit();
  wgmma::wait<1>(older, newer);
  to[threadIdx.x] = older.value[0];
  if (fixed) wgmma::wait<0>(newer);
  to[threadIdx.x] += newer.value[0];  // @wgmma_group
  wgmma::wait<0>(newer);
}
void wgmma_group(bool fixed) { run(wait_for_older, fixed); }

// ---- wgmma_refill: a stage is refilled while a wgmma may still read it ------------------------------------
__global__ void refill(__half* from, float* to, bool fixed) {
  __shared__ std::uint64_t full, empty;
  alignas(128) __shared__ __half tiles[2 * kOperand];
  const auto a = plain(tiles), b = plain(tiles + kOperand);
  start_barrier(&full, 1);
  start_barrier(&empty, wgmma::kThreads);
  Fragment d;
  for (int round = 0; round < kRounds; ++round) {
    if (threadIdx.x == 0) {
      await_phase(&empty, round + 1);
      expect_bytes(&full, kBothBytes);
      ptx::cp_async_bulk(space_cluster, space_global, tiles, from, kBothBytes, &full);  // @wgmma_refill
    }
    await_phase(&full, round);
    wgmma::fence();
    wgmma::mma<__half, kK, kK>(d, a, b, round > 0);  // @wgmma_refill
    wgmma::commit();
    if (fixed) wgmma::wait<0>(d);
    ptx::mbarrier_arrive(&empty);
  }
  wgmma::wait<0>(d);
  to[threadIdx.x] = d.value[0];
}
void wgmma_refill(bool fixed) { run(refill, fixed); }

// ---- wgmma_overwrite: threads overwrite an operand while a wgmma may still read it ------------------------
__global__ void overwrite(__half* from, float* to, bool fixed) {
  const auto [tiles, a, b] = load(from);
  Fragment d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, b, false);  // @wgmma_overwrite
  wgmma::commit();
  if (fixed) wgmma::wait<0>(d);
  __syncthreads();
  tiles[threadIdx.x] = __half(1.0f);  // @wgmma_overwrite
  wgmma::wait<0>(d);
  to[threadIdx.x] = d.value[0];
}
void wgmma_overwrite(bool fixed) { run(overwrite, fixed); }

// ---- wgmma_load: a wgmma reads an operand before its copy has completed -----------------------------------
__global__ void multiply_early(__half* from, float* to, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ __half tiles[2 * kOperand];
  const auto a = plain(tiles), b = plain(tiles + kOperand);
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    expect_bytes(&full, kBothBytes);
    ptx::cp_async_bulk(space_cluster, space_global, tiles, from, kBothBytes, &full);  // @wgmma_load
  }
  if (fixed) await_phase(&full, 0);
  Fragment d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, b, false);  // @wgmma_load
  wgmma::commit();
  wgmma::wait<0>(d);
  to[threadIdx.x] = d.value[0];
  await_phase(&full, 0);
}
void wgmma_load(bool fixed) { run(multiply_early, fixed); }

// ---- wgmma_proxy: no proxy fence between ordinary writes and the wgmma that reads them --------------------
__global__ void multiply_unfenced(__half* from, float* to, bool fixed) {
  alignas(128) __shared__ __half tiles[2 * kOperand];
  const auto a = plain(tiles), b = plain(tiles + kOperand);
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kOperand; i += wgmma::kThreads)
    tiles[i] = from[i];  // @wgmma_proxy
  if (fixed) ptx::fence_proxy_async(space_shared);
  if (!fixed) ptx::fence_proxy_async(space_global);  // the wrong memory
  __syncthreads();
  Fragment d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, b, false);  // @wgmma_proxy
  wgmma::commit();
  wgmma::wait<0>(d);
  to[threadIdx.x] = d.value[0];
}
void wgmma_proxy(bool fixed) { run(multiply_unfenced, fixed); }

// ---- wgmma_fence: no fence() before the first wgmma. Refused ----------------------------------------------
__global__ void multiply_without_fence(__half* from, float* to, bool fixed) {
  const auto [tiles, a, b] = load(from);
  Fragment d;
  for (float& value : d.value) value = 0;
  if (fixed) wgmma::fence();
  // Marked twice: the refusal names only this line.
  wgmma::mma<__half, kK, kK>(d, a, b, true);  // @wgmma_fence @wgmma_fence
  wgmma::commit();
  wgmma::wait<0>(d);
  to[threadIdx.x] = d.value[0];
}
void wgmma_fence(bool fixed) { run(multiply_without_fence, fixed); }

// ---- wgmma_store: no proxy fence between store_matrix and the bulk store that reads its rows --------------
constexpr std::uint32_t kRowsBytes = wgmma::kThreads * 16;

__global__ void store_unfenced(__half* /*from*/, float* to, bool fixed) {
  alignas(128) __shared__ std::byte rows[kRowsBytes];
  const std::uint32_t pairs[4] = {1, 2, 3, 4};
  wgmma::store_matrix(rows + 16 * threadIdx.x, pairs);  // @wgmma_store
  if (fixed) ptx::fence_proxy_async(space_shared);
  wgmma::named_barrier(1, wgmma::kThreads);
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(space_global, space_shared, to, rows, kRowsBytes);  // @wgmma_store
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}
void wgmma_store(bool fixed) { run(store_unfenced, fixed); }

// ---- wgmma_staging: the epilogue's tile is overwritten before its bulk store has read it ------------------
__global__ void stage_again(__half* /*from*/, float* to, bool fixed) {
  alignas(128) __shared__ std::byte rows[kRowsBytes];
  for (std::uint32_t tile = 0; tile < 2; ++tile) {
    if (fixed && threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    wgmma::named_barrier(1, wgmma::kThreads);
    const std::uint32_t pairs[4] = {tile, tile, tile, tile};
    wgmma::store_matrix(rows + 16 * threadIdx.x, pairs);  // @wgmma_staging
    ptx::fence_proxy_async(space_shared);
    wgmma::named_barrier(1, wgmma::kThreads);
    if (threadIdx.x == 0) {
      float* there = to + tile * kRowsBytes / 4;
      ptx::cp_async_bulk(space_global, space_shared, there, rows, kRowsBytes);  // @wgmma_staging
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
void wgmma_staging(bool fixed) { run(stage_again, fixed); }

// ---- wgmma_meeting: the two halves of a warpgroup arrive at barriers of different numbers -----------------
__global__ void other_barrier(__half* /*from*/, float* to, bool fixed) {
  __shared__ float words[wgmma::kThreads];
  const int half = static_cast<int>(threadIdx.x) / 64;
  words[threadIdx.x] = 1;  // @wgmma_meeting
  wgmma::named_barrier(fixed ? 1 : 1 + half, fixed ? wgmma::kThreads : 64);
  to[threadIdx.x] = words[(threadIdx.x + 64) % wgmma::kThreads];  // @wgmma_meeting
}
void wgmma_meeting(bool fixed) { run(other_barrier, fixed); }

// ---- wgmma_swizzle: the descriptor names another swizzle than the tensor map. A wrong result --------------
constexpr int kColumns = 64;  // of 16 bits: rows of 128 bytes

__device__ inline float a_value(int row, int column) { return static_cast<float>((3 * row + column) % 11); }

__global__ void fill_a(__half* a) {
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kColumns; i += static_cast<int>(blockDim.x))
    a[i] = __half(a_value(i / kColumns, i % kColumns));
}
/// D = A[:, 0 ... 15] times an identity matrix.
__global__ void multiply_swizzled(const __grid_constant__ CUtensorMap map, float* to, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(1024) __shared__ __half a[kSide * kColumns];
  alignas(128) __shared__ __half b[kOperand];
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    const std::int32_t at[2] = {0, 0};
    expect_bytes(&full, sizeof a);
    ptx::cp_async_bulk_tensor(space_cluster, space_global, a, &map, at, &full);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kOperand; i += wgmma::kThreads)
    b[i] = __half(i % 512 / 8 == i / 512 * 8 + i % 8 ? 1.0f : 0.0f);
  ptx::fence_proxy_async(space_shared);
  __syncthreads();
  await_phase(&full, 0);
  const auto right = wgmma::describe<kK, Swizzle::k128>(a, 0, 1024);
  const auto wrong = wgmma::describe<kK, Swizzle::k64>(a, 0, 1024);
  Fragment d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, fixed ? right : wrong, plain(b), false);
  wgmma::commit();
  wgmma::wait<0>(d);
  for (int i = 0; i < kSide / 2; ++i) {
    const auto [row, column] = wgmma::place<kSide>(static_cast<int>(threadIdx.x), i);
    to[row * kSide + column] = d.value[i];
  }
}
void wgmma_swizzle(bool fixed) {
  DeviceBuffer<__half> a(0, kSide * kColumns);
  DeviceBuffer<float> to(0, kSide * kSide);
  fill_a<<<1, 128>>>(a.data());
  const CUtensorMap map = semantics::map_of<__half>(
      {a.data(), {kColumns, kSide}, {kColumns}, {kColumns, kSide}, CU_TENSOR_MAP_SWIZZLE_128B},
      CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  multiply_swizzled<<<1, wgmma::kThreads>>>(map, to.data(), fixed);
  float got[kSide * kSide];
  if (cudaMemcpy(got, to.data(), sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess)
    throw std::runtime_error("the kernel failed");
  for (int i = 0; i < kSide * kSide; ++i) {
    const int row = i / kSide, column = i % kSide;
    if (got[i] != (column < wgmma::kDepth ? a_value(row, column) : 0.0f))
      throw std::runtime_error("wrong result: element " + std::to_string(i));
  }
}

const planted::Cases kCases = {
    {"wgmma_wait", wgmma_wait},       {"wgmma_group", wgmma_group},     {"wgmma_refill", wgmma_refill},
    {"wgmma_load", wgmma_load},       {"wgmma_proxy", wgmma_proxy},     {"wgmma_overwrite", wgmma_overwrite},
    {"wgmma_fence", wgmma_fence},     {"wgmma_store", wgmma_store},     {"wgmma_staging", wgmma_staging},
    {"wgmma_meeting", wgmma_meeting}, {"wgmma_swizzle", wgmma_swizzle},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
