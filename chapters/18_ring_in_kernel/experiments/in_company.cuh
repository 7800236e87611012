// Experiment of chapter 18: an algorithm and an all-reduce of NCCL at the same time.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_in_kernel {

/// The sum over all ranks of an f32 gradient, which is as large as a rank's weights, B, by at most `blocks`
/// multiprocessors: what data-parallel training sends while the layer before is computed.
class GradientAllReduce {
 public:
  /// Collective. Throws Skip as Rank::rail() does.
  GradientAllReduce(Rank& rank, MatmulShape whole, int blocks)
      : communicator_(rank.rail(1, blocks)),
        gradient_(rank.device(), static_cast<std::size_t>(whole.n * whole.k / rank.size())) {
    CUDA_CHECK(cudaMemset(gradient_.data(), 0, gradient_.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    run(rank.stream());  // NCCL connects the ranks now; while a kernel waits that would deadlock
    rank.synchronize(rank.stream());
    rank.barrier();
  }

  /// Enqueues it.
  void run(cudaStream_t stream) {
    NCCL_CHECK(ncclAllReduce(gradient_.data(), gradient_.data(), gradient_.size(), ncclFloat32, ncclSum,
                             communicator_, stream));
  }

 private:
  ncclComm_t communicator_;
  DeviceBuffer<float> gradient_;
};

/// An algorithm's call with a GradientAllReduce on another stream. Both begin together, and the call ends
/// when both have.
template <typename Algorithm>
class InCompany {
 public:
  /// Collective. `more` is the algorithm's.
  template <typename... More>
  InCompany(Rank& rank, MatmulShape whole, int blocks, const More&... more)
      : beside_(rank.second_stream()),
        gradient_(rank, whole, blocks),
        algorithm_(rank, whole, more...),
        begin_(rank.device(), cudaEventDisableTiming),
        summed_(rank.device(), cudaEventDisableTiming) {}

  /// Enqueues one call.
  template <typename T>
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    CUDA_CHECK(cudaEventRecord(begin_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(beside_, begin_));
    gradient_.run(beside_);
    CUDA_CHECK(cudaEventRecord(summed_, beside_));
    algorithm_.run(a, b, c, stream);
    CUDA_CHECK(cudaStreamWaitEvent(stream, summed_));
  }

 private:
  cudaStream_t beside_;
  GradientAllReduce gradient_;
  Algorithm algorithm_;
  Event begin_, summed_;
};

/// An algorithm that sets aside `blocks` multiprocessors; of a small GPU half.
template <typename Algorithm>
class LeavesRoom {
 public:
  /// Collective. The algorithm's constructor takes `given`, and then the number.
  template <typename... Given>
  LeavesRoom(Rank& rank, MatmulShape whole, int blocks, const Given&... given)
      : algorithm_(rank, whole, given...,
                   std::min(blocks, tensor_core_gemm::multiprocessors_with_wgmma(rank) / 2)) {}

  /// Enqueues one call.
  template <typename T>
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    algorithm_.run(a, b, c, stream);
  }
  /// The algorithm's cost card: fewer blocks move the same bytes.
  static Cost cost(MatmulShape whole, int ranks, int rank) { return Algorithm::cost(whole, ranks, rank); }

 private:
  Algorithm algorithm_;
};

/// Adds the algorithm with each of these numbers of multiprocessors set aside, alone and beside an all-reduce
/// of as many. The algorithm's constructor takes `given`, and then the number.
template <typename Algorithm, typename Table, typename... Given>
void add_in_company(Table& table, const std::string& name, std::initializer_list<int> set_aside,
                    const Given&... given) {
  for (const int blocks : set_aside) {
    const std::string aside = name + "_" + std::to_string(blocks);
    table.add(aside, algorithm<LeavesRoom<Algorithm>>(blocks, given...));
    if (blocks > 0)
      table.add(aside + "_beside", algorithm<InCompany<LeavesRoom<Algorithm>>>(blocks, blocks, given...));
  }
}

/// Adds the all-reduces alone.
template <typename Table>
void add_gradients(Table& table, std::initializer_list<int> all_blocks) {
  const auto run = [](GradientAllReduce& gradient, auto&, cudaStream_t stream) { gradient.run(stream); };
  for (const int blocks : all_blocks)
    table.add("all_reduce_" + std::to_string(blocks), part<GradientAllReduce>(Role::kPart, run, blocks));
}

}  // namespace overlap::ring_in_kernel
