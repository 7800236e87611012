// A common start for the GPUs of all ranks.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Holds back one stream of every rank until the host lets all of them go at the same moment: what they then
/// do was enqueued before, so no host's delay is in its time. All ranks of a process look at one word of
/// pinned memory (backend::hold() says how far apart they go on); each process opens its own word once the
/// barrier between them returns, not at once.
/// Only for work that a host enqueues without waiting, at most 900 operations a stream (measured: the host
/// blocks after about 1,000 behind a closed gate), of which each kind has run before (loading a kernel, or
/// NCCL's first collective, waits for the GPU, hence for ever). Constructor, destructor and open() are
/// collective.
class Gate {
 public:
  /// A closed gate for all ranks. Throws RunStopped, CudaError.
  explicit Gate(Rank& rank);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// The stream's later work waits for the next open().
  void close(cudaStream_t stream);
  /// Waits until every rank has closed and enqueued, then opens all gates at once.
  void open();

 private:
  Rank& rank_;
  std::optional<PinnedBuffer<std::uint32_t>> own_;  // the first rank of a process has the word
  std::uint32_t* word_;
  std::uint32_t round_ = 1;
  std::atomic<std::uint32_t> awaited_ = 0;
};

}  // namespace overlap
