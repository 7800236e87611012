// Chapter 19: in which type partial sums travel, and how a part of a tile lies in shared memory on its way.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::fused_reduce_scatter {

namespace wgmma = overlap::wgmma;
using tensor_core_gemm::kGroupRows;
using tensor_core_gemm::kSpan;
using tensor_core_gemm::TmaStore;
using wgmma::Fragment;

/// Bytes in a row of a part: the span of the swizzle.
inline constexpr int kPartRowBytes = 128;
/// A part: a warpgroup's rows of a tile, 128 bytes of each. It is what one copy moves.
inline constexpr int kPartBytes = kGroupRows * kPartRowBytes;
/// Columns of a part whose elements are of type W.
template <typename W>
inline constexpr int kPartColumns = kPartRowBytes / int{sizeof(W)};
/// A thread's values of such a part: 128 threads share its 64 rows.
template <typename W>
inline constexpr int kPartValues = kPartColumns<W> / 2;

/// Where two neighbours lie, from an even column on: chunk c of row r lies at c XOR r mod 8, as the tensor
/// map says.
template <typename W, typename Part>
__device__ __forceinline__ auto* pair_in(Part* part, int row, int column) {
  const int byte = column * int{sizeof(W)};
  return part + row * kPartRowBytes + (byte / 16 ^ row % 8) * 16 + byte % 16;
}

/// Two neighbours in memory, as f32. (The race detector sees a load into a variable, and none into a
/// function's argument.)
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

/// Adds what thread `thread` of the warpgroup has of a part to its sums.
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

/// Partial sums travel as T: each is rounded once, and the links carry half of what f32 takes.
struct SixteenBitWire {
  /// Of an element on the way.
  template <SixteenBit T>
  using Type = T;
  static constexpr const char* kName = "fused";  ///< of the variant

  /// A thread's values of a part, into the part.
  template <SixteenBit T>
  __device__ __forceinline__ static void write(const float* values, std::byte* part, int thread) {
    TmaStore::write(values, reinterpret_cast<T*>(part), thread);
  }
};

/// Partial sums travel as they are, in f32: nothing is rounded but the result, and the links carry twice the
/// bytes.
struct F32Wire {
  /// Of an element on the way.
  template <SixteenBit T>
  using Type = float;
  static constexpr const char* kName = "fused_f32";  ///< of the variant

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
