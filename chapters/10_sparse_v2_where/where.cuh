// Chapter 10, version 2: the same search without the host. As torch.where does it, a round writes its own
// number wherever the comparison holds; no size depends on the data.
//
// Source: "Sparse All-Reduce in PyTorch" (D. MacLeod, Speechmatics), "v2: torch.where". Its printed loop goes
// over the global rows; this one goes over the local ones, as its text says and as its version 3 does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"

namespace overlap::sparse_where {

/// sources[g] = *step where flags[g] is set. The size of the result does not depend on the flags, so the host
/// need not wait. `step` is in device memory as the article's counter is: there, a number of the host would
/// become a tensor, and so a copy, in each round. (A launch of our own could take it by value.)
__global__ void write_where(const char* flags, std::int64_t count, const std::int32_t* step,
                            std::int32_t* sources) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  // [task where: what does round `step` write, and where?]
  if (g < count && flags[g]) sources[g] = *step;
  // [/task]
}

/// positions[sources[g]] = g, wherever a row has its place.
__global__ void invert_sources(const std::int32_t* sources, std::int64_t count, std::int32_t* positions) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  // [task invert: which of this rank's rows belongs at place g, and which places have none?]
  if (g < count && sources[g] != sparse_nonzero::kNoRow) positions[sources[g]] = static_cast<std::int32_t>(g);
  // [/task]
}

/// The memory that version 2's loop reads and writes, all on the GPU. Chapter 11 records the same loop.
template <SparseIndex Index>
struct WhereLoop {
  const Index* local = nullptr;         ///< [local_count], this rank's row numbers
  std::int64_t local_count = 0;         ///< rounds of the loop
  const Index* global = nullptr;        ///< [global_count], all ranks' row numbers
  std::int64_t global_count = 0;        ///< comparisons in each round
  const std::int32_t* steps = nullptr;  ///< [local_count] = 0, 1, 2, ...: the number of each round
  char* flags = nullptr;                ///< [global_count], of one round
  std::int32_t* sources = nullptr;      ///< [global_count]: which local row belongs to each global one
};

/// Enqueues two kernels for each local row, and nothing else: no wait, no size that depends on the data.
/// `sources` is unchanged where this rank has no row.
template <SparseIndex Index>
void enqueue_where_loop(const WhereLoop<Index>& loop, cudaStream_t stream) {
  const unsigned blocks = blocks_for(loop.global_count);
  for (std::int64_t row = 0; row < loop.local_count; ++row) {
    // [task round: what are the two kernels of a round, and which one goes first?]
    sparse_nonzero::mark_equal<<<blocks, kBlockThreads, 0, stream>>>(loop.global, loop.global_count,
                                                                     loop.local + row, loop.flags);
    write_where<<<blocks, kBlockThreads, 0, stream>>>(loop.flags, loop.global_count, loop.steps + row,
                                                      loop.sources);
    // [/task]
    CUDA_CHECK(cudaGetLastError());
  }
}

/// The search of version 2: for each of a rank's n rows, G comparisons by one kernel, G conditional writes by
/// another.
class WhereSearch {
 public:
  /// Memory grows with the calls.
  explicit WhereSearch(const sparse_nonzero::SparseFrame& frame) : rank_(frame.rank) {}

  /// See RowSearch.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions, cudaStream_t stream) {
    const auto rows = static_cast<std::size_t>(local.count), places = static_cast<std::size_t>(global.count);
    const WhereLoop<Index> loop = {.local = local.indices,
                                   .local_count = local.count,
                                   .global = global.indices,
                                   .global_count = global.count,
                                   .steps = steps_.at_least(rows, stream),
                                   .flags = flags_.at_least(places, stream),
                                   .sources = sources_.at_least(places, stream)};
    // ---- Before the loop: the number of each round; no place has a source ---------------------------------
    sparse_nonzero::write_numbers<<<blocks_for(local.count), kBlockThreads, 0, stream>>>(steps_.data(),
                                                                                         local.count);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemsetAsync(sources_.data(), 0xFF, places * sizeof(std::int32_t), stream));

    // ---- The loop: for each place, which of this rank's rows belongs there? -------------------------------
    enqueue_where_loop(loop, stream);

    // ---- After it: for each row, its place ----------------------------------------------------------------
    invert_sources<<<blocks_for(global.count), kBlockThreads, 0, stream>>>(sources_.data(), global.count,
                                                                           positions);
    CUDA_CHECK(cudaGetLastError());
  }

  /// The cost of the search.
  static Cost cost(const sparse_nonzero::SparseCall& call) {
    if (call.local == 0) return {};
    const auto number = static_cast<std::int64_t>(sizeof(std::int32_t));
    return {.launches = 1 + 2 * call.local + 1,
            .comparisons = call.local * call.global,
            .memory = call.local * number + call.global * (number + std::int64_t{sizeof(char)})};
  }

 private:
  Rank& rank_;
  GrowingBuffer<std::int32_t> steps_{rank_}, sources_{rank_};
  GrowingBuffer<char> flags_{rank_};
};

/// Version 2.
template <SparseIndex Index, Floating T>
using WhereAllReduce = sparse_nonzero::SparseAllReduce<Index, T, WhereSearch>;

}  // namespace overlap::sparse_where
