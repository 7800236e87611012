// Chapter NN: broadcasts send all rows of A to every rank, then one GEMM. Replace this by what the chapter
// teaches, and name the source of the algorithm.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdint>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::new_chapter {

/// C = A B, where rank r has A[m_r, k] and B[k, n_r] and computes C[m, n_r], all row-major, m_r and n_r by
/// balanced_share(). Sums are in f32.
template <Floating T>
class NewChapter {
 public:
  /// Collective. Allocates memory for all of A, and makes every call once, because NCCL connects the ranks in
  /// its first call, and a kernel is loaded in its first launch. Throws Skip if ranks share a GPU, CudaError
  /// if there is too little memory, NcclError.
  NewChapter(Rank& rank, MatmulShape whole)
      : rank_(rank),
        whole_(whole),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        nccl_(rank.nccl()),
        all_of_a_(rank.device(), whole.m * whole.k) {
    const DeviceBuffer<T> a(rank.device(), balanced_share(whole.m, rank.size(), rank.id()).size() * whole.k);
    gather(a.data(), rank.stream());
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {{whole.m, columns_, whole.k}});
    rank.synchronize(rank.stream());
  }

  /// Enqueues the whole call on `stream` and returns. `a` is the rank's rows [m_r, k], `b` its columns
  /// [k, n_r], `c` its result [m, n_r], all on its GPU. The next call may follow at once.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    gather(a, stream);
    multiply(b, c, stream);
  }

  /// Costs of rank `rank` of `ranks` in one call: it sends its rows to all other ranks and receives theirs.
  /// The page's cost card and the tests use these numbers.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const std::int64_t element = sizeof(T), own = balanced_share(whole.m, ranks, rank).size() * whole.k;
    return {.messages = own > 0 ? ranks - 1 : 0,
            .bytes_out = (ranks - 1) * own * element,
            .bytes_in = (whole.m * whole.k - own) * element,
            .products = balanced_share(whole.n, ranks, rank).empty() ? 0 : 1,
            .memory = whole.m * whole.k * element};
  }

 private:
  // ---- Step 1: every rank's rows of A to all ranks --------------------------------------------------------
  void gather(const T* a, cudaStream_t stream) {
    const TimelineScope name("gather A");
    for (int root = 0; root < rank_.size(); ++root) {
      // [task broadcast: which rows does a rank send to all others, and where are they in A?]
      const Range rows = balanced_share(whole_.m, rank_.size(), root);
      // All ranks compute the same sizes, so all of them skip the broadcast of an empty shard.
      if (rows.empty()) continue;
      NCCL_CHECK(ncclBroadcast(a, all_of_a_.data() + rows.begin * whole_.k, rows.size() * whole_.k,
                               nccl_type<T>(), root, nccl_, stream));
      // [/task]
    }
  }

  // ---- Step 2: all rows of A times this rank's columns of B -----------------------------------------------
  void multiply(const T* b, T* c, cudaStream_t stream) {
    const TimelineScope name("multiply");
    matmul_row_major(rank_.cublas(), stream, {whole_.m, columns_, whole_.k}, all_of_a_.data(), b, c);
  }

  Rank& rank_;
  MatmulShape whole_;
  std::int64_t columns_;  // of this rank's part of B and C
  ncclComm_t nccl_;
  DeviceBuffer<T> all_of_a_;  // [m, k]
};

}  // namespace overlap::new_chapter
