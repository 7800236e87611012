// Chapter 08: why is the way through the host slow? The same dense all-reduce over the links between the GPUs
// and through host memory, and how the GPUs of this host are connected.
//
// Source: "Sparse All-Reduce in PyTorch" (Speechmatics), "Baseline results" and "Impact of P2P". The article
// asks nccl-tests' all_reduce_perf; bandwidths are defined as there (doc/PERFORMANCE.md).
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "overlap/data/matrix.hpp"
#include "overlap/data/parallel.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_baselines {

/// The sum of one buffer over all ranks by NCCL, over the best path that its environment allows: NVLink,
/// PCIe, or with NCCL_P2P_DISABLE=1 buffers in host memory. It reads its environment once, so each setting is
/// a process of its own.
template <Floating T>
class NcclTransport {
 public:
  /// For buffers of so many elements. Collective. Throws Skip if ranks share a GPU.
  NcclTransport(Rank& rank, std::int64_t elements) : elements_(elements), nccl_(rank.nccl()) {}

  /// Enqueues out = the sum of all ranks' `in`, both on the rank's GPU and not the same.
  void run(const T* in, T* out, cudaStream_t stream) {
    NCCL_CHECK(
        ncclAllReduce(in, out, static_cast<std::size_t>(elements_), nccl_type<T>(), ncclSum, nccl_, stream));
  }

 private:
  std::int64_t elements_;
  ncclComm* nccl_;
};

/// The same sum by the CPU, in host memory that all ranks share. Rank r adds up the r-th share of all
/// buffers, so that each byte is read once and the work is shared out: the best that a CPU can do for a dense
/// buffer.
template <Floating T>
class HostTransport {
 public:
  /// For buffers of so many elements. Allocates as much pinned memory on each rank. Collective.
  HostTransport(Rank& rank, std::int64_t elements)
      : rank_(rank),
        elements_(elements),
        staging_(static_cast<std::size_t>(elements)),
        all_(rank.exchange(staging_.data())) {}

  /// out = the sum of all ranks' `in`, both on the rank's GPU. Returns when it is complete. Collective.
  void run(const T* in, T* out, cudaStream_t stream) {
    CUDA_CHECK(cudaMemcpyAsync(staging_.data(), in, staging_.bytes(), cudaMemcpyDeviceToHost, stream));
    rank_.synchronize(stream);
    rank_.barrier();  // all buffers are in host memory
    const Range own = balanced_share(elements_, rank_.size(), rank_.id());
    add(own);
    rank_.barrier();  // all shares are added up
    for (int rank = 0; rank < rank_.size(); ++rank) {
      const Range share = balanced_share(elements_, rank_.size(), rank);
      if (share.empty()) continue;
      CUDA_CHECK(cudaMemcpyAsync(out + share.begin, all_[static_cast<std::size_t>(rank)] + share.begin,
                                 static_cast<std::size_t>(share.size()) * sizeof(T), cudaMemcpyHostToDevice,
                                 stream));
    }
    rank_.synchronize(stream);
    rank_.barrier();  // all reads of this rank's share are complete: the next call may overwrite it
  }

 private:
  /// The sum of a share, into this rank's buffer: no other rank reads that share before it is there.
  void add(Range share) {
    constexpr std::int64_t kSmallestShare = 1 << 16;  // elements: fewer are not worth a thread
    T* const sum = staging_.data();
    parallel_shares(
        share.size(),
        [&](Range part) {
          for (std::int64_t i = share.begin + part.begin; i < share.begin + part.end; ++i) {
            float total = 0;
            for (const T* buffer : all_) total += static_cast<float>(buffer[i]);
            sum[i] = from_float<T>(total);
          }
        },
        kSmallestShare);
    backend::host_work(static_cast<std::uint64_t>(share.size()) * sizeof(T) * (all_.size() + 1));
  }

  Rank& rank_;
  std::int64_t elements_;
  PinnedBuffer<T> staging_;
  std::vector<T*> all_;  // every rank's
};

/// Element i of a rank's buffer: small integers, so that sums of 16 ranks are exact in every type.
inline float transport_value(std::int64_t i, int rank) { return static_cast<float>((i + rank) % 16); }

/// Element i of the sum over all ranks.
inline float transport_sum(std::int64_t i, int ranks) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += transport_value(i, rank);
  return sum;
}

/// A GPU as its neighbours see it.
struct GpuLinks {
  backend::GpuPlace place;   ///< on the PCI bus, and in which NUMA node
  std::vector<int> reaches;  ///< the other GPUs whose memory it can read and write directly
};

/// How GPUs 0 ... gpus - 1 are connected.
inline std::vector<GpuLinks> topology(int gpus) {
  std::vector<GpuLinks> all;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    GpuLinks links{backend::place_of(gpu), {}};
    for (int peer = 0; peer < gpus; ++peer) {
      int direct = 0;
      if (peer != gpu) CUDA_CHECK(cudaDeviceCanAccessPeer(&direct, gpu, peer));
      if (direct != 0) links.reaches.push_back(peer);
    }
    all.push_back(std::move(links));
  }
  return all;
}

/// The environment's setting of NCCL's path: "NCCL_P2P_DISABLE=1", or "default" if it is not set.
inline std::string transport_settings() {
  std::string text;
  for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE",
                           "NCCL_ALGO", "NCCL_PROTO", "CUDA_VISIBLE_DEVICES"}) {
    if (const char* value = std::getenv(name); value != nullptr)
      text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
  }
  return text.empty() ? "default" : text;
}

}  // namespace overlap::sparse_baselines
