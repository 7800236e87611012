// Chapter 02: an NCCL all-gather brings all rows of A to every GPU, then one GEMM of cuBLAS.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/nccl_buffer.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::gather_then_multiply {

/// C_r = A B_r, where rank r of P holds the rows A_r [m_r, k] of A and the columns B_r [k, n_r] of B, and
/// wants its columns C_r [m, n_r] of C; m_r and n_r by balanced_share(). Sums in f32. Sources: "Collective
/// matrix multiplication" (JAX), "Introducing Async Tensor Parallelism" (PyTorch): both call this the
/// baseline.
template <Floating T>
class GatherThenMultiply {
 public:
  /// `whole`: the sizes over all ranks. Allocates a slot for each rank's rows of A, and runs the all-gather
  /// and every GEMM once. Collective. Throws Skip if ranks share a GPU or NCCL does not have the mode,
  /// CudaError or NcclError if the memory cannot be allocated.
  GatherThenMultiply(Rank& rank, MatmulShape whole, NcclMode mode = NcclMode::kPlain)
      : rank_(rank),
        k_(whole.k),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        own_elements_(balanced_share(whole.m, rank.size(), rank.id()).size() * whole.k),
        slot_elements_(slot_elements(whole, rank.size(), mode)),
        fills_own_slot_(whole.m % rank.size() != 0 || mode != NcclMode::kPlain),
        slots_(rank, rank.size() * slot_elements_, mode),
        blocks_(blocks(whole, rank.size(), slot_elements_)) {
    // NCCL connects the ranks in its first call, and CUDA loads a kernel at its first launch: do both now.
    all_gather(own_slot(), rank.stream());
    std::vector<MatmulShape> shapes;
    for (const Block& block : blocks_) shapes.push_back({block.rows, columns_, k_});
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), shapes);
    rank.synchronize(rank.stream());
  }

  /// Enqueues one call on `stream` and returns. `a` is A_r, `b` is B_r, `c` becomes C_r, all row-major on
  /// this rank's GPU. The next call may follow at once: `stream` orders the uses of the slots.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    gather(a, stream);
    multiply(b, c, stream);
  }

  // ---- Step 1: every rank's rows of A into the slots of every rank --------------------------------------
  /// The communication alone.
  void gather(const T* a, cudaStream_t stream) {
    const TimelineScope name("gather A");
    // [task source: NCCL reads a whole slot from every rank. From where may it, where a rank has fewer rows?]
    // [blank] const T* source = own_slot();
    const T* source = a;
    if (fills_own_slot_) {
      // NCCL would read past the end of `a`; and in the newer modes it wants to read from the window.
      if (own_elements_ > 0) {
        CUDA_CHECK(
            cudaMemcpyAsync(own_slot(), a, own_elements_ * sizeof(T), cudaMemcpyDeviceToDevice, stream));
      }
      source = own_slot();
    }
    // [/task]
    all_gather(source, stream);
  }

  /// The cost of a call for a rank if NCCL sends along a ring, a slot in each step. Every rank sends and
  /// receives the same number of bytes, padding included. The page's cost card; the tests compare it with
  /// counted bytes.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const std::int64_t slot = slot_rows(whole, ranks) * whole.k, bytes = slot * std::int64_t{sizeof(T)};
    const std::size_t products = blocks(whole, ranks, slot).size();
    const bool multiplies = !balanced_share(whole.n, ranks, rank).empty();
    return {.messages = ranks - 1,
            .bytes_out = (ranks - 1) * bytes,
            .bytes_in = (ranks - 1) * bytes,
            .products = multiplies ? static_cast<std::int64_t>(products) : 0,
            .memory = ranks * bytes};
  }

 private:
  /// Rows of A that are contiguous in the slots, without padding between them: one GEMM.
  struct Block {
    std::int64_t first;  // where the first row begins, in elements from the first slot
    std::int64_t row;    // which row of A, and of C, that is
    std::int64_t rows;
  };

  /// An all-gather takes the same number of elements from every rank. So a slot holds the largest share, m /
  /// P rounded up; in the slots of ranks with one row less, the last row is padding.
  static std::int64_t slot_rows(MatmulShape whole, int ranks) { return (whole.m + ranks - 1) / ranks; }

  /// Elements of a slot. In a window slots begin at multiples of 16 bytes: with NCCL 2.28.9, parts of slots
  /// that began at odd multiples of 2 bytes arrived wrong.
  static std::int64_t slot_elements(MatmulShape whole, int ranks, NcclMode mode) {
    const std::int64_t elements = slot_rows(whole, ranks) * whole.k;
    constexpr std::int64_t kAligned = 16 / sizeof(T);
    return mode == NcclMode::kPlain ? elements : (elements + kAligned - 1) / kAligned * kAligned;
  }

  /// The GEMMs of a call: one if P divides m and slots are not rounded up. No GEMM may read padding: C has no
  /// rows for it, and it may hold NaN.
  static std::vector<Block> blocks(MatmulShape whole, int ranks, std::int64_t slot_elements) {
    std::vector<Block> blocks;
    // [task blocks: which rows lie together in the slots, and belong to which rows of C?]
    for (int rank = 0; rank < ranks; ++rank) {
      const Range rows = balanced_share(whole.m, ranks, rank);
      const std::int64_t first = rank * slot_elements;
      if (rows.empty()) continue;
      // The first slots are full (balanced_share() gives the first ranks the larger shares). Unless slots
      // are rounded up, they and the first slot with padding form one block.
      if (!blocks.empty() && blocks.back().first + blocks.back().rows * whole.k == first) {
        blocks.back().rows += rows.size();
      } else {
        blocks.push_back({first, rows.begin, rows.size()});
      }
    }
    // [/task]
    return blocks;
  }

  T* own_slot() const { return slots_.data() + rank_.id() * slot_elements_; }

  void all_gather(const T* source, cudaStream_t stream) {
    // [task all_gather: which collective fills all slots, and how many elements does each rank give?]
    // If `source` is this rank's slot, the call is in place: NCCL does not write that slot.
    NCCL_CHECK(
        ncclAllGather(source, slots_.data(), slot_elements_, nccl_type<T>(), slots_.communicator(), stream));
    // [/task]
  }

  // ---- Step 2: all rows of A times this rank's columns of B ---------------------------------------------
  void multiply(const T* b, T* c, cudaStream_t stream) {
    const TimelineScope name("multiply");
    for (const Block& block : blocks_) {
      // [task multiply: which rows of the slots, and which rows of C?]
      matmul_row_major(rank_.cublas(), stream, {block.rows, columns_, k_}, slots_.data() + block.first, b,
                       c + block.row * columns_);
      // [/task]
    }
  }

  Rank& rank_;
  std::int64_t k_, columns_;  // of this rank's product
  std::int64_t own_elements_, slot_elements_;
  bool fills_own_slot_;  // before the all-gather, which then is in place
  NcclBuffer<T> slots_;  // P slots of slot_elements_
  std::vector<Block> blocks_;
};

}  // namespace overlap::gather_then_multiply
