// Chapter 09, version 1: the places of a rank's rows are searched for one after the other, each as
// torch.nonzero does it: compare all, select the equal ones, and copy their number to the host.
//
// Source: "Sparse All-Reduce in PyTorch" (D. MacLeod, Speechmatics), "v1: torch.nonzero".
#pragma once

#include <cub/device/device_select.cuh>

#include <cstddef>
#include <cstdint>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"

namespace overlap::sparse_nonzero {

/// flags[g] = 1 where global[g] is *wanted, else 0. `wanted` is in device memory: the host never reads it.
template <SparseIndex Index>
__global__ void mark_equal(const Index* global, std::int64_t count, const Index* wanted, char* flags) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (g < count) flags[g] = global[g] == *wanted;
}

/// numbers[i] = i.
__global__ void write_numbers(std::int32_t* numbers, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] = static_cast<std::int32_t>(i);
}

/// The search of version 1: for each of a rank's n rows, G comparisons, a selection, and a host
/// synchronisation.
class NonzeroSearch {
 public:
  /// Memory grows with the calls.
  explicit NonzeroSearch(const SparseFrame& frame) : rank_(frame.rank), waits_(frame.waits) {}

  /// See RowSearch.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions, cudaStream_t stream) {
    make_room(global.count, stream);
    write_numbers<<<blocks_for(global.count), kBlockThreads, 0, stream>>>(places_.data(), global.count);
    CUDA_CHECK(cudaGetLastError());
    for (std::int64_t row = 0; row < local.count; ++row) {
      // ---- Which of the global row numbers is this one? ---------------------------------------------------
      // [task compare: which numbers are compared in each round?]
      mark_equal<<<blocks_for(global.count), kBlockThreads, 0, stream>>>(global.indices, global.count,
                                                                         local.indices + row, flags_.data());
      // [/task]
      CUDA_CHECK(cudaGetLastError());
      std::size_t bytes = temporary_.bytes();
      CUDA_CHECK(select(temporary_.data(), bytes, global.count, stream));

      // ---- How many are there? ----------------------------------------------------------------------------
      // The size of a selection depends on the data, and the host needs it: this wait makes version 1 slow.
      // Meanwhile the GPU is idle.
      CUDA_CHECK(cudaMemcpyAsync(found_on_host_.data(), found_.data(), found_.bytes(), cudaMemcpyDeviceToHost,
                                 stream));
      waits_.wait(stream);

      // ---- The first of them is its place -----------------------------------------------------------------
      // [task place: where does the row's place go, and when is there none?]
      // Each row is in the list once. Otherwise its place stays kNoRow, and step 3 counts it as lost.
      if (found_on_host_[0] != 1) continue;
      CUDA_CHECK(cudaMemcpyAsync(positions + row, matches_.data(), sizeof(std::int32_t),
                                 cudaMemcpyDeviceToDevice, stream));
      // [/task]
    }
  }

  /// The cost of the search.
  static Cost cost(const SparseCall& call) {
    if (call.local == 0) return {};
    return {.host_waits = call.local,
            .launches = 1 + 2 * call.local,
            .comparisons = call.local * call.global,
            .memory = call.global * static_cast<std::int64_t>(sizeof(char) + 2 * sizeof(std::int32_t))};
  }

 private:
  void make_room(std::int64_t global_count, cudaStream_t stream) {
    const auto count = static_cast<std::size_t>(global_count);
    places_.at_least(count, stream);
    flags_.at_least(count, stream);
    matches_.at_least(count, stream);
    std::size_t bytes = 0;
    CUDA_CHECK(select(nullptr, bytes, global_count, stream));
    temporary_.at_least(bytes, stream);
  }

  /// The places with a flag, in order, to matches_, and their number to found_. Without `temporary` only
  /// returns its size in bytes.
  cudaError_t select(void* temporary, std::size_t& bytes, std::int64_t global_count, cudaStream_t stream) {
    return cub::DeviceSelect::Flagged(temporary, bytes, places_.data(), flags_.data(), matches_.data(),
                                      found_.data(), static_cast<int>(global_count), stream);
  }

  Rank& rank_;
  HostWaits& waits_;
  GrowingBuffer<std::int32_t> places_{rank_};   // 0, 1, 2, ..., of which some are selected
  GrowingBuffer<char> flags_{rank_};            // 1 where the numbers are equal
  GrowingBuffer<std::int32_t> matches_{rank_};  // the selected ones: exactly one, unless a row is lost
  GrowingBuffer<std::byte> temporary_{rank_};
  DeviceBuffer<std::int32_t> found_{rank_.device(), 1};
  PinnedBuffer<std::int32_t> found_on_host_{1};
};

/// Version 1.
template <SparseIndex Index, Floating T>
using NonzeroAllReduce = SparseAllReduce<Index, T, NonzeroSearch>;

}  // namespace overlap::sparse_nonzero
