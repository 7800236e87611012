// Experiment of chapter 18: an algorithm with an all-reduce of NCCL beside it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::ring_in_kernel {

/// The sum over all ranks of an f32 gradient as large as the rank's weights, of `blocks` multiprocessors: what
/// data-parallel training sends while the next layer is computed.
class GradientAllReduce {
 public:
  /// Of `weights` elements. Collective. Throws Skip as Rank::rail() does.
  GradientAllReduce(Rank& rank, std::int64_t weights, int blocks)
      : communicator_(rank.rail(1, blocks)), gradient_(rank.device(), static_cast<std::size_t>(weights)) {
    CUDA_CHECK(cudaMemset(gradient_.data(), 0, gradient_.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    run(rank.stream());  // NCCL connects the ranks, which must not happen while a kernel waits
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

/// A call of the algorithm, and a GradientAllReduce on another stream: both begin together, and a call ends
/// when both have.
template <typename Algorithm>
class InCompany {
 public:
  /// Collective. `more` is the algorithm's.
  template <typename... More>
  InCompany(Rank& rank, MatmulShape whole, std::int64_t weights, int blocks, const More&... more)
      : rank_(rank),
        reduce_(rank, weights, blocks),
        algorithm_(rank, whole, more...),
        begin_(rank.device(), cudaEventDisableTiming),
        reduced_(rank.device(), cudaEventDisableTiming) {}

  /// Enqueues one call.
  template <typename... Matrices>
  void run(const Matrices&... matrices, cudaStream_t stream);

 private:
  Rank& rank_;
  GradientAllReduce reduce_;
  Algorithm algorithm_;
  Event begin_, reduced_;
};

}  // namespace overlap::ring_in_kernel
