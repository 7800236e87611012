// Chapter 06 (a), the baseline: one GEMM, then NCCL's reduce-scatter.
//
// ncclReduceScatter gives every rank the same number of elements, but 33 rows are not the same number for 4
// ranks. So the GEMM writes one slot of rows for each rank, all as long as the largest share:
//
//   33 rows, 4 ranks: shares of 9, 8, 8, 8    [9 rows][8 rows, 1 unused][8 rows, 1 unused][8 rows, 1 unused]
//
// NCCL adds the unused rows as well; a rank with fewer rows than its slot ignores the last one.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdint>

#include "06_reduce_scatter/chunk_products.cuh"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/nccl_type.hpp"

namespace overlap::reduce_scatter {

/// Rows of C = X W: rank r has X[m, k_r] and W[k_r, n], and gets its rows of C[m, n]. NCCL adds in T.
template <Floating T>
class MultiplyThenScatter {
 public:
  /// Collective. Throws Skip if ranks share a GPU; CudaError, CublasError, NcclError.
  MultiplyThenScatter(Rank& rank, MatmulShape whole)
      : rank_(rank),
        nccl_(rank.nccl()),
        chunks_{whole.m, whole.n, rank.size()},
        slot_rows_(chunks_.rows(0).size()),
        k_(balanced_share(whole.k, rank.size(), rank.id()).size()),
        slots_(rank.device(), rank.size() * slot_rows_ * whole.n),
        own_slot_(rank.device(), slot_rows_ * whole.n) {}

  /// Enqueues one call: x[m, k_r], w[k_r, n], c[m_r, n], all row-major and dense, on this rank's GPU.
  void run(const T* x, const T* w, T* c, cudaStream_t stream) {
    multiply(x, w, stream);
    scatter(c, stream);
  }

  /// What each of `ranks` moves and keeps in one call, if NCCL sends along a ring: all slots but one. The
  /// page's cost card and the tests both come from here.
  static Cost cost(MatmulShape whole, int ranks) {
    const Chunks chunks{whole.m, whole.n, ranks};
    const std::int64_t slot = chunks.elements(0) * std::int64_t{sizeof(T)};
    return {.messages = ranks - 1,
            .bytes_out = (ranks - 1) * slot,
            .bytes_in = (ranks - 1) * slot,
            .products = 1 + chunks.with_rows() - full_slots(chunks),
            .memory = (ranks + 1) * slot};
  }

 private:
  /// The first shares are as large as their slots, so their rows are contiguous.
  static std::int64_t full_slots(const Chunks& chunks) {
    return chunks.m % chunks.ranks == 0 ? chunks.ranks : chunks.m % chunks.ranks;
  }

  // ---- Step 1: the product, each rank's rows into its slot ---------------------------------------------
  void multiply(const T* x, const T* w, cudaStream_t stream) {
    const TimelineScope name("multiply");
    // [task slots: which rows of the product can be written at once, and which slot has a gap behind it?]
    const int full = static_cast<int>(full_slots(chunks_));  // all of them, if P divides m
    multiply_rows({0, full * slot_rows_}, 0, x, w, stream);
    for (int owner = full; owner < chunks_.ranks; ++owner) {
      multiply_rows(chunks_.rows(owner), owner * slot_rows_, x, w, stream);
    }
    // [/task]
  }
  void multiply_rows(Range rows, std::int64_t to_row, const T* x, const T* w, cudaStream_t stream) {
    matmul_row_major(rank_.cublas(), stream, {rows.size(), chunks_.n, k_}, x + rows.begin * k_, w,
                     slots_.data() + to_row * chunks_.n);
  }

  // ---- Step 2: the sum over all ranks, of which each gets its slot -------------------------------------
  void scatter(T* c, cudaStream_t stream) {
    const TimelineScope name("reduce-scatter");
    const std::int64_t own = chunks_.rows(rank_.id()).size();
    const bool fills_slot = own == slot_rows_;
    T* const to = fills_slot ? c : own_slot_.data();
    NCCL_CHECK(
        ncclReduceScatter(slots_.data(), to, slot_rows_ * chunks_.n, nccl_type<T>(), ncclSum, nccl_, stream));
    if (fills_slot || own == 0) return;
    CUDA_CHECK(cudaMemcpyAsync(c, to, own * chunks_.n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }

  Rank& rank_;
  ncclComm_t nccl_;
  Chunks chunks_;
  std::int64_t slot_rows_, k_;
  DeviceBuffer<T> slots_, own_slot_;
};

}  // namespace overlap::reduce_scatter
