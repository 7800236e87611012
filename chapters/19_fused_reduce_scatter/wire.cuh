// Chapter 19: the type of summands on the wire, and the parts of a tile in shared memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/ring_of_stages.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::fused_reduce_scatter {

namespace ptx = cuda::ptx;
namespace wgmma = overlap::wgmma;
using tensor_core_gemm::kGroupRows;
using tensor_core_gemm::kSpan;
using tensor_core_gemm::TmaStore;
using wgmma::Fragment;

/// Bytes in a row of a part: the span of the swizzle.
inline constexpr int kPartRowBytes = 128;
/// A part: 128 bytes of each of a warpgroup's rows of a tile; the unit of a copy.
inline constexpr int kPartBytes = kGroupRows * kPartRowBytes;
/// Columns of a part of type W.
template <typename W>
inline constexpr int kPartColumns = kPartRowBytes / int{sizeof(W)};
/// Values of a part in each thread: 128 threads share its 64 rows.
template <typename W>
inline constexpr int kPartValues = kPartColumns<W> / 2;

/// Address of the two elements from an even column on, in the tensor map's swizzle: chunk c of row r lies at
/// c XOR r mod 8.
template <typename W, typename Part>
__device__ __forceinline__ auto* pair_in(Part* part, int row, int column) {
  const int byte = column * int{sizeof(W)};
  return part + row * kPartRowBytes + (byte / 16 ^ row % 8) * 16 + byte % 16;
}

/// Loads two adjacent elements and converts them to f32. (Via a variable: the race detector does not see a
/// load into a function's argument.)
///@{
__device__ __forceinline__ float2 load_pair(const std::byte* from, const __half*) {
  const __half2 pair = *reinterpret_cast<const __half2*>(from);
  return __half22float2(pair);
}
__device__ __forceinline__ float2 load_pair(const std::byte* from, const __nv_bfloat16*) {
  const __nv_bfloat162 pair = *reinterpret_cast<const __nv_bfloat162*>(from);
  return __bfloat1622float2(pair);
}
__device__ __forceinline__ float2 load_pair(const std::byte* from, const float*) {
  return *reinterpret_cast<const float2*>(from);
}
///@}

/// Adds thread `thread`'s values of a part to its sums.
template <typename W>
__device__ __forceinline__ void add_part(const std::byte* part, int thread, float* sums) {
#pragma unroll
  for (int i = 0; i < kPartValues<W>; i += 2) {
    const auto [row, column] = wgmma::place<2 * kPartValues<W>>(thread, i);
    const float2 pair = load_pair(pair_in<W>(part, row, column), static_cast<const W*>(nullptr));
    sums[i] += pair.x;
    sums[i + 1] += pair.y;
  }
}

/// A warpgroup's part buffers. To send, the warpgroup fills them and the exchanging thread empties them; to
/// fetch, the exchanging thread fills them, and the warpgroup adds them up. The last buffer of a sum then
/// takes the sum, and the exchanging thread stores it to C. A block's own tiles come last, so its last send
/// precedes its first fetch.
struct PartBuffers {
  static constexpr int kCount = 4;  ///< parts of a warpgroup's rows of a 128 x 256 tile

  alignas(1024) std::byte parts[kCount][kPartBytes];  ///< swizzled
};

/// The mbarriers of a warpgroup's part buffers.
struct PartBarriers {
  using Place = tensor_core_gemm::RingPlace<PartBuffers::kCount>;

  std::uint64_t filled[PartBuffers::kCount];  ///< by all threads of the warpgroup: buffer written
  std::uint64_t sent[PartBuffers::kCount];    ///< by the exchanging thread: TMA has read the buffer
  std::uint64_t here[PartBuffers::kCount];    ///< bytes of another rank's part have arrived
  std::uint64_t added[PartBuffers::kCount];   ///< by all threads: part added, or replaced by the sum

  /// Called by one thread, before Ring::init(), whose fence covers these barriers, too.
  __device__ void init() {
    for (int i = 0; i < PartBuffers::kCount; ++i) {
      ptx::mbarrier_init(&filled[i], wgmma::kThreads);
      ptx::mbarrier_init(&sent[i], 1);
      ptx::mbarrier_init(&here[i], 1);
      ptx::mbarrier_init(&added[i], wgmma::kThreads);
    }
  }
};

/// Partial sums are sent as T: each is rounded once, and the links carry half of the bytes of f32.
struct SixteenBitWire {
  /// Type of an element on the wire.
  template <SixteenBit T>
  using Type = T;
  static constexpr const char* kName = "fused";

  /// Writes a thread's values of a part to the part's buffer.
  template <SixteenBit T>
  __device__ __forceinline__ static void write(const float* values, std::byte* part, int thread) {
    TmaStore::write(values, reinterpret_cast<T*>(part), thread);
  }
};

/// Partial sums are sent in f32: only the result is rounded, and the links carry twice the bytes.
struct F32Wire {
  /// Type of an element on the wire.
  template <SixteenBit T>
  using Type = float;
  static constexpr const char* kName = "fused_f32";

  /// As SixteenBitWire::write().
  template <SixteenBit T>
  __device__ __forceinline__ static void write(const float* values, std::byte* part, int thread) {
#pragma unroll
    for (int i = 0; i < kPartValues<float>; i += 2) {
      const auto [row, column] = wgmma::place<2 * kPartValues<float>>(thread, i);
      *reinterpret_cast<float2*>(pair_in<float>(part, row, column)) = {values[i], values[i + 1]};
    }
  }
};

}  // namespace overlap::fused_reduce_scatter
