// Chapter 04: first contact with another GPU's memory. Two ranks in bare CUDA: how a GPU gets access to the
// other's memory, how it writes data there, and how the two GPUs signal, without any host, that data have
// arrived.
//
//   push   The sender copies into the receiver's memory, and then raises a word beside it.
//          The receiver's stream waits for that word: one wait.
//   pull   The receiver copies out of the sender's memory. It must know that the data are there; and the
//          sender, before it overwrites them, that they have been read: two meetings, on both sides.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "overlap/data/verify.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::copy_engine {

/// Element `i` of the message with this number.
__host__ __device__ inline int message_element(int sender, int number, int i) {
  return (sender + 1) << 28 | number << 24 | i;
}

/// Writes a whole message.
__global__ void write_message(int* message, int elements, int sender, int number) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < elements) message[i] = message_element(sender, number, i);
}

/// Two ranks that send each other messages of up to 2^24 integers.
class FirstPush {
 public:
  /// Collective. Throws std::invalid_argument unless there are two ranks, Skip if their GPUs have no peer
  /// access, CudaError.
  FirstPush(Rank& rank, int elements)
      : rank_(rank), peer_(1 - rank.id()), stream_(rank.stream()), elements_(elements) {
    if (rank.size() != 2) throw std::invalid_argument("FirstPush: it takes two");
    enable_access(rank.exchange(rank.device())[static_cast<std::size_t>(peer_)]);
    outbox_ = allocate<int>(elements);
    inbox_ = allocate<int>(elements);
    words_ = allocate<std::uint32_t>(2);
    CUDA_CHECK(cudaMemsetAsync(words_.get(), 0, 2 * sizeof(std::uint32_t), stream_));
    write(0);
    rank.synchronize(stream_);  // the words are 0 and the kernel is loaded before the peer gets their address
    const Addresses mine{outbox_.get(), inbox_.get(), words_.get()};
    theirs_ = rank.exchange(mine)[static_cast<std::size_t>(peer_)];
  }

  /// Collective: the peer may still read or write this memory.
  ~FirstPush() {
    try {
      rank_.synchronize(stream_);
      rank_.barrier();
      if (enabled_) CUDA_CHECK(cudaDeviceDisablePeerAccess(*enabled_));  // so that others may enable it
    } catch (...) {
      // The run is being stopped.
    }
  }
  FirstPush(const FirstPush&) = delete;
  FirstPush& operator=(const FirstPush&) = delete;

  /// Sends message `number` (1, 2, ..., 15) by pushing it, and receives the other's. The receiver must have
  /// read its inbox: a push does not wait for that.
  void push(int number) {
    write(number);
    // [task first_push: in which order do the copy, the write of the word and the wait go into the stream?]
    CUDA_CHECK(cudaMemcpyAsync(theirs_.inbox, outbox_.get(), bytes(), cudaMemcpyDefault, stream_));
    // The write follows the copy in the stream, so it waits for it. By default it is also a memory barrier.
    // The page explains what the waiting side may rely on.
    raise(0, number);
    await(0, number);
    // [/task]
  }

  /// Sends message `number` by letting the peer pull it, and pulls the peer's.
  void pull(int number) {
    write(number);
    // [task first_pull: what must both know before the copy, and what after it?]
    meet();  // both have written
    CUDA_CHECK(cudaMemcpyAsync(inbox_.get(), theirs_.outbox, bytes(), cudaMemcpyDefault, stream_));
    meet();  // both have read: the next message may be written
    // [/task]
  }

  /// Waits for the stream and compares every element of the message received. `corrupt`: the tests' hook.
  Verification compare(int number, bool corrupt = false) {
    std::vector<int> found(static_cast<std::size_t>(elements_)), expected(found.size());
    CUDA_CHECK(cudaMemcpyAsync(found.data(), inbox_.get(), bytes(), cudaMemcpyDeviceToHost, stream_));
    rank_.synchronize(stream_);
    for (int i = 0; i < elements_; ++i)
      expected[static_cast<std::size_t>(i)] = message_element(peer_, number, i);
    if (corrupt) corrupt_one_element(std::span<int>(found));
    return compare_matrices(std::span<const int>(expected), std::span<const int>(found), elements_);
  }

 private:
  /// The addresses that the peer needs.
  struct Addresses {
    int* outbox;
    int* inbox;
    std::uint32_t* words;  // 0: raised by a push; 1: by a meeting
  };

  struct Free {
    void operator()(void* memory) const { cudaFree(memory); }
  };
  template <typename T>
  using Memory = std::unique_ptr<T, Free>;

  template <typename T>
  static Memory<T> allocate(int elements) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, static_cast<std::size_t>(elements) * sizeof(T)));
    return Memory<T>(static_cast<T*>(memory));
  }

  /// From now on this GPU can access all memory of the peer's GPU that cudaMalloc allocates. One direction
  /// only: the peer does the same.
  void enable_access(int peer_device) {
    if (peer_device == rank_.device()) return;  // two ranks on one GPU
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, rank_.device(), peer_device));
    if (can == 0) {
      throw Skip("no peer access from GPU " + std::to_string(rank_.device()) + " to GPU " +
                 std::to_string(peer_device));
    }
    const cudaError_t error = cudaDeviceEnablePeerAccess(peer_device, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // it was enabled before in this process
    } else {
      CUDA_CHECK(error);
      enabled_ = peer_device;
    }
  }

  void write(int number) {
    write_message<<<(elements_ + 255) / 256, 256, 0, stream_>>>(outbox_.get(), elements_, rank_.id(), number);
    CUDA_CHECK(cudaGetLastError());
  }

  /// The stream sets word `i` of the other rank to `value`.
  void raise(int i, int value) {
    CU_CHECK(cuStreamWriteValue32(stream_, reinterpret_cast<CUdeviceptr>(theirs_.words + i),
                                  static_cast<std::uint32_t>(value), CU_STREAM_WRITE_VALUE_DEFAULT));
  }

  /// The stream waits until this rank's word `i` is at least `value`.
  void await(int i, int value) {
    CU_CHECK(cuStreamWaitValue32(stream_, reinterpret_cast<CUdeviceptr>(words_.get() + i),
                                 static_cast<std::uint32_t>(value), CU_STREAM_WAIT_VALUE_GEQ));
  }

  /// A barrier of the two streams: each raises a word of the other rank, and waits for its own. The words
  /// only grow, so none is ever reset; a rank that is ahead has raised its word further, which `at least`
  /// allows.
  void meet() {
    ++meetings_;
    raise(1, meetings_);
    await(1, meetings_);
  }

  std::size_t bytes() const { return static_cast<std::size_t>(elements_) * sizeof(int); }

  Rank& rank_;
  int peer_;
  cudaStream_t stream_;
  int elements_;
  int meetings_ = 0;
  std::optional<int> enabled_;  // the GPU to whose memory access was enabled
  Memory<int> outbox_, inbox_;
  Memory<std::uint32_t> words_;
  Addresses theirs_ = {};
};

}  // namespace overlap::copy_engine
