// Chapter 19: in which type partial sums travel, and how they leave the epilogue.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::fused_reduce_scatter {

namespace ptx = cuda::ptx;
namespace wgmma = overlap::wgmma;
using tensor_core_gemm::kGroupRows;
using tensor_core_gemm::kSpan;
using tensor_core_gemm::TmaStore;
using wgmma::Fragment;

/// Two neighbours in memory, as f32. (The race detector sees a load into a variable, and none into a
/// function's argument.)
///@{
__device__ __forceinline__ float2 pair_at(const __half* from) {
  const __half2 pair = *reinterpret_cast<const __half2*>(from);
  return __half22float2(pair);
}
__device__ __forceinline__ float2 pair_at(const __nv_bfloat16* from) {
  const __nv_bfloat162 pair = *reinterpret_cast<const __nv_bfloat162*>(from);
  return __bfloat1622float2(pair);
}
__device__ __forceinline__ float2 pair_at(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}
///@}

/// Partial sums travel as T: each is rounded once, and the links carry half of what f32 takes.
struct SixteenBitWire {
  /// Of an element on the way.
  template <SixteenBit T>
  using Type = T;
  static constexpr const char* kName = "fused";  ///< of the variant

  /// Starts the copies of a warpgroup's sums to `row` and `column` of the map's matrix; all threads call it.
  template <typename Tile, SixteenBit T>
  __device__ __forceinline__ static void send(const Fragment<Tile::kN>& sum, const CUtensorMap& map,
                                              TmaStore::Staging<T, Tile>& staging, int row, int column) {
    TmaStore::store<Tile, T>(sum, nullptr, map, &staging, row, column, 0, 0);
  }
};

/// Partial sums travel as they are, in f32: nothing is rounded but the result, and the links carry twice the
/// bytes.
struct F32Wire {
  /// Of an element on the way.
  template <SixteenBit T>
  using Type = float;
  static constexpr const char* kName = "fused_f32";  ///< of the variant

  /// As SixteenBitWire::send(). 128 bytes, a row of a box, are 32 columns: a part is half as wide.
  template <typename Tile, SixteenBit T>
  __device__ __forceinline__ static void send(const Fragment<Tile::kN>& sum, const CUtensorMap& map,
                                              TmaStore::Staging<T, Tile>& staging, int row, int column) {
    constexpr int kColumns = 128 / sizeof(float);
    const auto write = [&sum](T* buffer, int part, int thread) {
      constexpr int kChunk = 16 / sizeof(float);  // elements
#pragma unroll
      for (int i = 0; i < kColumns / 2; i += 2) {
        // Chunk c of row r lies at c XOR r mod 8, as the map says.
        const int value = part * (kColumns / 2) + i;
        const auto [at, from] = wgmma::place<Tile::kN>(thread, value);
        const int within = from - part * kColumns, chunk = within / kChunk ^ at % 8;
        auto* to = reinterpret_cast<float*>(buffer) + at * kColumns + chunk * kChunk + within % kChunk;
        *reinterpret_cast<float2*>(to) = {sum.value[value], sum.value[value + 1]};
      }
    };
    const auto copy = [&](const T* buffer, int part) {
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, {column + part * kColumns, row},
                                buffer);
    };
    TmaStore::store_parts<Tile::kN / kColumns>(staging, write, copy);
  }
};

}  // namespace overlap::fused_reduce_scatter
