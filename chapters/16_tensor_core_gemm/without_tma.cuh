// Chapter 16, first rung: tensor cores without TMA. All threads of a block copy a stage's operands into
// shared memory, two warpgroups multiply them, and only then the next ones are copied.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::tensor_core_gemm {

/// Called by all `Threads` of a block: copies a box of `Rows` rows by kSpan columns, which begins at `row`
/// and `column` of matrix[rows, columns], and writes it to shared memory as the swizzle of 128 bytes has it:
/// chunk c of row r lies at c XOR r mod 8. Elements outside the matrix become zeros. `columns` and `column`
/// are multiples of 8, so each chunk of 16 bytes lies wholly inside or outside.
template <int Rows, int Threads, SixteenBit T>
__device__ __forceinline__ void copy_box(T* box, const T* matrix, int rows, int columns, int row,
                                         int column) {
  constexpr int kChunk = 16 / sizeof(T), kChunks = kSpan / kChunk;  // elements, and chunks of a row
  static_assert(Rows * kChunks % Threads == 0);
#pragma unroll
  for (int first = 0; first < Rows * kChunks; first += Threads) {
    const int index = first + static_cast<int>(threadIdx.x);
    const int r = index / kChunks, c = index % kChunks;
    uint4 values = {};
    if (row + r < rows && column + c * kChunk < columns)
      values =
          *reinterpret_cast<const uint4*>(matrix + std::int64_t{row + r} * columns + column + c * kChunk);
    *reinterpret_cast<uint4*>(box + r * kSpan + (c ^ r % 8) * kChunk) = values;
  }
}

/// C = A B; see WithoutTma.
template <SixteenBit T, typename Tile, Major B>
__global__ __launch_bounds__(Tile::kGroups* wgmma::kThreads) void multiply_without_tma(const T* a, const T* b,
                                                                                       T* c, int m, int n,
                                                                                       int k, Tiling tiling) {
  constexpr int kThreads = Tile::kGroups * wgmma::kThreads;
  extern __shared__ __align__(1024) unsigned char shared[];
  auto& stage = *reinterpret_cast<Stage<T, Tile>*>(shared);
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  const Corner corner = place_of(static_cast<int>(blockIdx.x), tiling, 1).corner<Tile>();
  Fragment<Tile::kN> sum;
  for (int block = 0; block < tiling.along_k; ++block) {
    copy_box<Tile::kM, kThreads>(stage.a, a, m, k, corner.row, block * kSpan);
    if constexpr (B == Major::kK) {
      copy_box<Tile::kN, kThreads>(stage.b, b, n, k, corner.column, block * kSpan);
    } else {
      for (int box = 0; box < Tile::kN / kSpan; ++box) {
        copy_box<kSpan, kThreads>(stage.b + box * kSpan * kSpan, b, k, n, block * kSpan,
                                  corner.column + box * kSpan);
      }
    }
    ptx::fence_proxy_async(ptx::space_shared);  // each thread's stores, before wgmma reads them
    __syncthreads();
    multiply_stage<B>(sum, stage, group, block > 0);
    wgmma::wait<0>(sum);
    __syncthreads();  // both warpgroups have read the stage
  }
  store_values<T>(sum.value, c, corner.row + group * kGroupRows, corner.column, m, n);
}

/// The first rung.
struct WithoutTma {
  using Tile = tensor_core_gemm::Tile<128, 128, 1>;
  static constexpr int kThreads = Tile::kGroups * wgmma::kThreads;
  static constexpr const char* kName = "without_tma";

  /// Bytes of dynamic shared memory.
  template <SixteenBit T>
  static constexpr int shared_bytes() {
    return sizeof(Stage<T, Tile>);
  }
  /// Blocks of the grid.
  static int blocks(Tiling tiling, int /*multiprocessors*/) { return tiling.tiles(); }
  /// The kernel.
  template <SixteenBit T, Major B>
  static constexpr auto kernel = multiply_without_tma<T, Tile, B>;
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    multiply_without_tma<T, Tile, B><<<blocks, kThreads, shared_bytes<T>(), stream>>>(
        a, b, c, static_cast<int>(shape.m), static_cast<int>(shape.n), static_cast<int>(shape.k),
        tiling_of<Tile>(shape));
  }
};

}  // namespace overlap::tensor_core_gemm
