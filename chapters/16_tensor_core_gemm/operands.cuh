// Chapter 16: how A and B come into shared memory, and how a warpgroup multiplies what is there.
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

/// A row-major matrix in global memory as a tensor, of which copies move boxes of `box_rows` rows and 128
/// bytes of columns, kSpan of 16 bits; their 16-byte chunks change places within each row of 128 bytes (the
/// swizzle), so that neither wgmma nor stores into a column of chunks meet the same bank. What a box has
/// outside of the matrix comes as zeros, and is not written. Throws CudaError if `data` or a row is not
/// aligned to 16 bytes.
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

/// One stage of shared memory: a tile's rows of A and columns of B for kSpan values of k.
template <SixteenBit T, typename Tile>
struct Stage {
  T a[Tile::kM * kSpan];  ///< a row of k for each m
  T b[Tile::kN * kSpan];  ///< B[k, n]: kN / kSpan boxes, in each a row of n for each k; B[n, k]: as A
};

/// The maps from which stages are filled.
template <SixteenBit T, typename Tile, Major B>
struct OperandMaps {
  CUtensorMap a;  ///< boxes of a tile's rows
  CUtensorMap b;  ///< boxes of its columns

  /// Of A[m, k] and B[k, n]; if k is B's fast index, of B[n, k]. So many blocks share the tile's columns.
  OperandMaps(const T* a_data, const T* b_data, MatmulShape shape, int blocks = 1)
      : a(tensor_map(a_data, shape.m, shape.k, Tile::kM)),
        b(B == Major::kMN ? tensor_map(b_data, shape.k, shape.n, kSpan)
                          : tensor_map(b_data, shape.n, shape.k, Tile::kN / blocks)) {}
};

/// Called by one thread: fills the stage with the k-block `block` of the tile that begins there. `full`
/// completes its phase when all bytes are there.
template <Major B, SixteenBit T, typename Tile>
__device__ __forceinline__ void load_stage(Stage<T, Tile>& stage, const CUtensorMap& a, const CUtensorMap& b,
                                           Corner from, int block, std::uint64_t* full) {
  // [task load: how many bytes will come, and which boxes of A and B are they?]
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, sizeof stage);
  const int k = block * kSpan;
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.a, &a, {k, from.row}, full);
  if constexpr (B == Major::kK) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.b, &b, {k, from.column}, full);
  } else {
    // A box has rows of 128 bytes: kSpan columns. So the tile's columns are several boxes.
    for (int box = 0; box < Tile::kN / kSpan; ++box) {
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.b + box * kSpan * kSpan, &b,
                                {from.column + box * kSpan, k}, full);
    }
  }
  // [/task]
}

/// Called by warpgroup `group` of the tile: starts sum = A B for its rows, plus sum if `accumulate`, as one
/// group of wgmma. They run on behind it.
template <Major B, SixteenBit T, typename Tile>
__device__ __forceinline__ void multiply_stage(Fragment<Tile::kN>& sum, const Stage<T, Tile>& stage,
                                               int group, bool accumulate) {
  constexpr int kAtom = 8 * kSpan * sizeof(T);  // bytes of eight rows, within which the swizzle works
  const auto a = wgmma::describe<Major::kK, Swizzle::k128>(stage.a + group * kGroupRows * kSpan, 0, kAtom);
  // With rows of k, the next atom has the next eight n. With rows of n, it has the next eight k, and the next
  // kSpan columns are a box further.
  const auto b = wgmma::describe<B, Swizzle::k128>(stage.b, kSpan * kSpan * sizeof(T), kAtom);
  constexpr int kStep = wgmma::kDepth * sizeof(T);  // bytes to the next 16 k, in a row of k
  constexpr int kStepB = B == Major::kK ? kStep : wgmma::kDepth * kSpan * sizeof(T);
  wgmma::fence();
  // [task multiply: four products of depth 16 are one stage; where does each find its operands?]
#pragma unroll
  for (int i = 0; i < kSpan / wgmma::kDepth; ++i) {
    wgmma::mma<T, Major::kK, B>(sum, wgmma::advance(a, i * kStep), wgmma::advance(b, i * kStepB),
                                accumulate || i > 0);
  }
  // [/task]
  wgmma::commit();
}

/// Returns once the phase of that parity is complete.
__device__ __forceinline__ void await_phase(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

}  // namespace overlap::tensor_core_gemm
