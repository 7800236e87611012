// Chapter 16: loads of A and B into shared memory by TMA, and their multiplication by wgmma.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/tile.cuh"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/wgmma.hpp"

namespace overlap::tensor_core_gemm {

namespace ptx = cuda::ptx;
using wgmma::Fragment;
using wgmma::Major;
using wgmma::Swizzle;

/// Tensor map of a row-major matrix in global memory. Copies move boxes of `box_rows` rows by 128 bytes of
/// columns (kSpan elements of 16 bits). In shared memory the swizzle permutes the 16-byte chunks of each row,
/// so that a column of chunks lies in different banks. Elements of a box outside the matrix are loaded as
/// zeros and not stored. Throws CudaError if `data` or a row is not aligned to 16 bytes.
template <Floating T>
CUtensorMap tensor_map(const T* data, std::int64_t rows, std::int64_t columns, int box_rows) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {sizes[0] * sizeof(T)};
  const cuuint32_t box[] = {128 / sizeof(T), static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  constexpr auto type = std::same_as<T, float>    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                        : std::same_as<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                  : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUtensorMap map;
  CU_CHECK(cuTensorMapEncodeTiled(&map, type, 2, const_cast<T*>(data), sizes, row_bytes, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

/// One stage of shared memory, for one k-block (kSpan values of k): a tile's rows of A and columns of B.
template <SixteenBit T, typename Tile>
struct Stage {
  T a[Tile::kM * kSpan];  ///< [m][k]
  T b[Tile::kN * kSpan];  ///< Major::kMN: kN / kSpan boxes of [k][kSpan columns]; Major::kK: [n][k]
};

/// The tensor maps of A and B.
template <SixteenBit T, typename Tile, Major B>
struct OperandMaps {
  CUtensorMap a;  ///< boxes of a tile's rows
  CUtensorMap b;  ///< boxes of its columns

  /// For A[m, k] and B[k, n] (B[n, k] with Major::kK). `blocks`: blocks of a cluster that share the columns.
  OperandMaps(const T* a_data, const T* b_data, MatmulShape shape, int blocks = 1)
      : a(tensor_map(a_data, shape.m, shape.k, Tile::kM)),
        b(B == Major::kMN ? tensor_map(b_data, shape.k, shape.n, kSpan)
                          : tensor_map(b_data, shape.n, shape.k, Tile::kN / blocks)) {}
};

/// Called by one thread: starts the copies of k-block `block` of the tile at `from` into the stage. The phase
/// of `full` completes when all bytes have arrived.
template <Major B, SixteenBit T, typename Tile>
__device__ __forceinline__ void load_stage(Stage<T, Tile>& stage, const CUtensorMap& a, const CUtensorMap& b,
                                           Corner from, int block, std::uint64_t* full) {
  // [task load: how many bytes does `full` expect, and which boxes of A and B are copied?]
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, sizeof stage);
  const int k = block * kSpan;
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.a, &a, {k, from.row}, full);
  if constexpr (B == Major::kK) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.b, &b, {k, from.column}, full);
  } else {
    // A row of a box has 128 bytes, kSpan columns, so the tile's columns need several boxes.
    for (int box = 0; box < Tile::kN / kSpan; ++box) {
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.b + box * kSpan * kSpan, &b,
                                {from.column + box * kSpan, k}, full);
    }
  }
  // [/task]
}

/// Called by consumer warpgroup `group`: issues the wgmma of the stage for the warpgroup's rows, sum = A B
/// or, if `accumulate`, sum += A B, and commits them as one group. Asynchronous: see wgmma::wait().
template <Major B, SixteenBit T, typename Tile>
__device__ __forceinline__ void multiply_stage(Fragment<Tile::kN>& sum, const Stage<T, Tile>& stage,
                                               int group, bool accumulate) {
  constexpr int kAtom = 8 * kSpan * sizeof(T);  // bytes of eight rows: the atom of the swizzle
  const auto a = wgmma::describe<Major::kK, Swizzle::k128>(stage.a + group * kGroupRows * kSpan, 0, kAtom);
  // Major::kK: the next atom holds the next eight n. Major::kMN: it holds the next eight k, and the next
  // kSpan columns lie in the next box.
  const auto b = wgmma::describe<B, Swizzle::k128>(stage.b, kSpan * kSpan * sizeof(T), kAtom);
  constexpr int kStep = wgmma::kDepth * sizeof(T);  // bytes to the next 16 k, in a row of k
  constexpr int kStepB = B == Major::kK ? kStep : wgmma::kDepth * kSpan * sizeof(T);
  wgmma::fence();
  // [task multiply: a stage is four wgmma of depth 16; where does each find its operands?]
#pragma unroll
  for (int i = 0; i < kSpan / wgmma::kDepth; ++i) {
    wgmma::mma<T, Major::kK, B>(sum, wgmma::advance(a, i * kStep), wgmma::advance(b, i * kStepB),
                                accumulate || i > 0);
  }
  // [/task]
  wgmma::commit();
}

/// Waits until the phase of this parity is complete.
__device__ __forceinline__ void await_phase(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

}  // namespace overlap::tensor_core_gemm
