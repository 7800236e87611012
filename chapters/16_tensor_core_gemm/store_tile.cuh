// Chapter 16: the epilogue: a warpgroup stores its rows of a tile.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"

namespace overlap::tensor_core_gemm {

/// Rounds two sums to T and packs them into a word, the first in the low half.
template <SixteenBit T>
__device__ __forceinline__ std::uint32_t pack(float first, float second) {
  std::uint32_t bits;
  if constexpr (std::same_as<T, __half>) {
    const __half2 pair = __floats2half2_rn(first, second);
    memcpy(&bits, &pair, sizeof bits);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

/// Called by all threads of a warpgroup, each with its values of 2 * `Values` columns: rounds them and stores
/// them to `row` and `column` of C, those inside C[m, n]. A thread stores four bytes at a time, so a warp
/// writes 16 bytes in each of 8 rows: half of a 32-byte sector.
template <SixteenBit T, int Values>
__device__ __forceinline__ void store_values(const float (&values)[Values], T* c, int row, int column, int m,
                                             int n) {
  const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
#pragma unroll
  for (int i = 0; i < Values; i += 2) {
    const auto place = wgmma::place<2 * Values>(thread, i);
    if (row + place.row >= m || column + place.column >= n) continue;
    // n and the column are even, so the pair lies in an aligned word.
    T* pair = c + std::int64_t{row + place.row} * n + column + place.column;
    *reinterpret_cast<std::uint32_t*>(pair) = pack<T>(values[i], values[i + 1]);
  }
}

/// Plain stores of a tile's sums.
struct PlainStore {
  /// No shared memory, and no map of C.
  template <SixteenBit T, typename Tile>
  struct Staging {};

  /// Stores the sums of a warpgroup at `row` and `column` of C, those inside C[m, n].
  template <typename Tile, SixteenBit T>
  __device__ __forceinline__ static void store(const Fragment<Tile::kN>& sum, T* c, const CUtensorMap&,
                                               Staging<T, Tile>*, int row, int column, int m, int n) {
    store_values<T>(sum.value, c, row, column, m, n);
  }

  /// Plain stores need no wait.
  __device__ __forceinline__ static void finish() {}
};

/// Stores by TMA: a warpgroup writes kSpan columns of its sums to a buffer in shared memory, and one TMA copy
/// stores them. Meanwhile the warpgroup writes the next columns to its other buffer, and then begins the next
/// tile. (The article's EPILOGUE_SUBTILE.)
struct TmaStore {
  /// Buffers of a warpgroup, each for kSpan columns of its rows. Two alternate; one is enough if the tile has
  /// only kSpan columns.
  template <SixteenBit T, typename Tile>
  struct Staging {
    static constexpr int kBuffers = Tile::kN > kSpan ? 2 : 1;
    T buffers[kBuffers][kGroupRows * kSpan];  ///< swizzled
  };

  /// Called by all threads of a warpgroup: starts the copies of its sums to `row` and `column` of C.
  template <typename Tile, SixteenBit T>
  __device__ __forceinline__ static void store(const Fragment<Tile::kN>& sum, T*, const CUtensorMap& map,
                                               Staging<T, Tile>* staging, int row, int column, int, int) {
    const auto write_part = [&](T* buffer, int part, int thread) {
      write(sum.value + part * kPartValues, buffer, thread);
    };
    const auto copy_part = [&](const T* buffer, int part) {
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, {column + part * kSpan, row},
                                buffer);
    };
    store_parts<Tile::kN / kSpan>(*staging, write_part, copy_part);
  }

  /// Part by part: all threads call write(buffer, part, thread of the warpgroup), then one thread calls
  /// copy(buffer, part), which starts the copies out of the buffer.
  template <int Parts, typename Staging, typename Write, typename Copy>
  __device__ __forceinline__ static void store_parts(Staging& staging, const Write& write, const Copy& copy) {
    const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
    const int barrier = 1 + static_cast<int>(threadIdx.x) / wgmma::kThreads;  // 0 is __syncthreads()
    constexpr int kBuffers = Staging::kBuffers;
#pragma unroll
    for (int part = 0; part < Parts; ++part) {
      auto* buffer = staging.buffers[part % kBuffers];
      // [task drain: what must be complete before the buffer is written, and before it is copied?]
      if (thread == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kBuffers - 1>{});  // frees this buffer
      wgmma::named_barrier(barrier, wgmma::kThreads);
      write(buffer, part, thread);
      ptx::fence_proxy_async(ptx::space_shared);  // each thread's stores, before a copy reads them
      wgmma::named_barrier(barrier, wgmma::kThreads);
      // [/task]
      if (thread == 0) {
        copy(buffer, part);
        ptx::cp_async_bulk_commit_group();
      }
    }
  }

  /// Waits until the copies have read the buffers: a block must not exit before.
  __device__ __forceinline__ static void finish() {
    if (threadIdx.x % wgmma::kThreads == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
  }

  /// Values of a part in each thread.
  static constexpr int kPartValues = kSpan / 2;

  /// Called by all threads of the warpgroup, each with its `values` of a part: writes the part to the buffer,
  /// swizzled as the tensor map expects it: chunk c of row r lies at c XOR r mod 8.
  template <SixteenBit T>
  __device__ __forceinline__ static void write(const float* values, T* buffer, int thread) {
    constexpr int kChunk = 16 / sizeof(T);  // elements
    const int lane = thread % 32;
    const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int columns = 0; columns < kSpan; columns += 2 * kChunk) {
      // A warp stores four 8 x 8 matrices: upper and lower rows of the first chunk, then of the second one.
      // `eight` points to the thread's elements of them; lane 8 j + i gives the address of row i of matrix j.
      const float* eight = values + columns / 2;
      const std::uint32_t pairs[] = {pack<T>(eight[0], eight[1]), pack<T>(eight[2], eight[3]),
                                     pack<T>(eight[4], eight[5]), pack<T>(eight[6], eight[7])};
      const int chunk = columns / kChunk + lane / 16;
      wgmma::store_matrix(buffer + row * kSpan + (chunk ^ row % 8) * kChunk, pairs);
    }
  }
};

}  // namespace overlap::tensor_core_gemm
