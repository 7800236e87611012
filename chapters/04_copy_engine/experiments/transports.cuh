// Chapter 04: ways to send a shard to the left neighbour, and the multiprocessors that each takes from a
// GEMM: NCCL's kernel, our copy kernel on few or many multiprocessors, copy engines by one stream or two.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "04_copy_engine/first_push.cuh"
#include "overlap/bench/device_data.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::copy_engine {

/// What a thread copies at a time: the most that one instruction loads.
struct alignas(16) Quad {
  std::uint32_t words[4];  ///< 16 bytes, of whatever type
};

/// A copy by multiprocessors: threads load from their own GPU and store over the link. Any grid; neighbouring
/// threads take neighbouring elements.
__global__ void copy_by_threads(Quad* to, const Quad* from, std::int64_t quads) {
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < quads; i += threads)
    to[i] = from[i];
}

/// So many integers that hold their rank, and the message's number mod 16.
inline std::vector<int> message(int sender, int number, std::size_t ints) {
  std::vector<int> values(ints);
  for (std::size_t i = 0; i < ints; ++i)
    values[i] = message_element(sender, number % 16, static_cast<int>(i % (1 << 24)));
  return values;
}

/// Copies a message to the rank's GPU, and waits for it.
inline void put_message(Rank& rank, void* to, const std::vector<int>& values) {
  CUDA_CHECK(
      cudaMemcpyAsync(to, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice, rank.stream()));
  rank.synchronize(rank.stream());
}

/// Compares every element received with the message that was sent. Throws WrongResult. `corrupt`: the tests'
/// hook.
inline void require_message(Rank& rank, const void* from, const std::vector<int>& sent,
                            const std::string& name, bool corrupt = false) {
  std::vector<int> found = download(rank, static_cast<const int*>(from), std::ssize(sent));
  if (corrupt) corrupt_one_element(std::span<int>(found));
  require_right(compare_matrices(std::span<const int>(sent), std::span<const int>(found),
                                 static_cast<std::int64_t>(sent.size())),
                name);
}

/// One way to send.
struct Transport {
  static constexpr int kUnknown = -1;  ///< an unknown number of multiprocessors
  std::string name;                    ///< for the tables
  int multiprocessors;  ///< that it takes from a GEMM: 0 for copy engines, kUnknown if NCCL decides
  /// Enqueues that many sends of the shard, one after the other, on `stream` or on streams that it waits for.
  std::function<void(int shards, cudaStream_t stream)> send;
};

/// A shard in every rank's memory, and the ways to send it to the left neighbour.
class Transports {
 public:
  /// Collective. A shard has `bytes`, rounded up to 16. Throws as PeerBuffer does.
  Transports(Rank& rank, std::int64_t bytes)
      : rank_(rank),
        quads_((bytes + sizeof(Quad) - 1) / static_cast<std::int64_t>(sizeof(Quad))),
        outbox_(rank, static_cast<std::size_t>(quads_)),
        inbox_(rank, static_cast<std::size_t>(quads_)),
        fork_(rank.device(), cudaEventDisableTiming),
        join_(rank.device(), cudaEventDisableTiming) {
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, rank.device()));
    add_nccl();
    for (const int wanted : {4, 16, 32}) {
      if (wanted < multiprocessors_) add_kernel(wanted, std::to_string(wanted));
    }
    add_kernel(multiprocessors_, "all");
    list_.push_back({"copy engine, push", 0, [this](int shards, cudaStream_t stream) {
                       while (shards-- > 0) copy(left(), outbox_.local(), quads_, stream);
                     }});
    list_.push_back({"copy engine, pull", 0, [this](int shards, cudaStream_t stream) {
                       while (shards-- > 0) copy(inbox_.local(), outbox_.on(rank_.next()), quads_, stream);
                     }});
    list_.push_back({"copy engine, push on 2 streams", 0,
                     [this](int shards, cudaStream_t stream) { push_on_two_streams(shards, stream); }});
  }

  const std::vector<Transport>& list() const { return list_; }  ///< all that can run here
  const std::string& skipped() const { return skipped_; }       ///< why NCCL cannot; empty if it can
  int multiprocessors() const { return multiprocessors_; }      ///< of this GPU
  std::int64_t bytes() const { return quads_ * static_cast<std::int64_t>(sizeof(Quad)); }  ///< of a shard

  /// Sends a shard whose elements hold their rank, once by each transport, and compares every element
  /// received. Collective. Throws WrongResult. `corrupt`: the tests' hook.
  void verify(bool corrupt) {
    for (const Transport& transport : list_) {
      write_next();
      transport.send(1, rank_.stream());
      meet();
      compare(transport.name, corrupt);
    }
  }

  /// Writes a new message to the outbox, so that the data of an earlier call cannot pass for it. Collective.
  void write_next() {
    put_message(rank_, outbox_.local(), message(rank_.id(), ++number_, ints()));
    meet();
  }
  /// Compares the inbox with what the right neighbour has written last. When all ranks have sent, and before
  /// one of them sends again. Throws WrongResult.
  void compare(const std::string& name, bool corrupt = false) {
    require_message(rank_, inbox_.local(), message(rank_.next(), number_, ints()), name, corrupt);
    meet();
  }

 private:
  std::size_t ints() const { return static_cast<std::size_t>(4 * quads_); }
  Quad* left() const { return inbox_.on(rank_.previous()); }

  /// A barrier of all ranks' streams.
  void meet() {
    rank_.synchronize(rank_.stream());
    rank_.barrier();
  }

  static void copy(Quad* to, const Quad* from, std::int64_t quads, cudaStream_t stream) {
    CUDA_CHECK(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(quads) * sizeof(Quad), cudaMemcpyDefault, stream));
  }

  void add_nccl() {
    try {
      rank_.nccl();
    } catch (const Skip& skip) {
      skipped_ = skip.what();
      return;
    }
    list_.push_back(
        {"NCCL send and receive", Transport::kUnknown, [this](int shards, cudaStream_t stream) {
           const auto bytes = static_cast<std::size_t>(this->bytes());
           while (shards-- > 0) {
             NCCL_CHECK(ncclGroupStart());
             NCCL_CHECK(ncclSend(outbox_.local(), bytes, ncclChar, rank_.previous(), rank_.nccl(), stream));
             NCCL_CHECK(ncclRecv(inbox_.local(), bytes, ncclChar, rank_.next(), rank_.nccl(), stream));
             NCCL_CHECK(ncclGroupEnd());
           }
         }});
  }

  void add_kernel(int blocks, const std::string& how_many) {
    // Up to 1024 threads a block: beside it, hardly any other block finds room on its multiprocessor.
    const auto threads = static_cast<int>(std::clamp<std::int64_t>(quads_ / blocks / 32 * 32, 32, 1024));
    list_.push_back({"copy kernel, " + how_many + " SMs", blocks,
                     [this, blocks, threads](int shards, cudaStream_t stream) {
                       while (shards-- > 0) {
                         copy_by_threads<<<blocks, threads, 0, stream>>>(left(), outbox_.local(), quads_);
                         CUDA_CHECK(cudaGetLastError());
                       }
                     }});
  }

  /// Half of each shard on each stream. This is faster only if a GPU uses two engines for two copies to one
  /// peer, and one engine does not saturate the link.
  void push_on_two_streams(int shards, cudaStream_t stream) {
    const cudaStream_t second = rank_.transfer_stream(1);
    const std::int64_t half = quads_ / 2;
    CUDA_CHECK(cudaEventRecord(fork_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(second, fork_));
    while (shards-- > 0) {
      copy(left(), outbox_.local(), half, stream);
      copy(left() + half, outbox_.local() + half, quads_ - half, second);
    }
    CUDA_CHECK(cudaEventRecord(join_, second));
    CUDA_CHECK(cudaStreamWaitEvent(stream, join_));
  }

  Rank& rank_;
  std::int64_t quads_;
  PeerBuffer<Quad> outbox_, inbox_;
  Event fork_, join_;
  int multiprocessors_ = 0;
  int number_ = 0;  // of the message in the outbox
  std::vector<Transport> list_;
  std::string skipped_;
};

}  // namespace overlap::copy_engine
