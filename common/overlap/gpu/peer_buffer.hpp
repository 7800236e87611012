// Memory that all ranks reach: a buffer on every rank's GPU, whose address every rank knows.
#pragma once

#include <cstddef>
#include <vector>

#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Whose memory a rank accesses, where there are several processes.
enum class Reach {
  kAllRanks,  ///< that of all ranks: only one process can have it
  kProcess,   ///< that of the ranks of its process
};

/// The untyped part of PeerBuffer.
class PeerMemory {
 public:
  PeerMemory(Rank& rank, std::size_t bytes, Reach reach);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// Waits until no rank uses it any more: for this rank's GPU, then for all ranks. If an exception passes
  /// through this rank, the run is stopped first.
  void settle() noexcept;
  void* on(int rank) const { return all_[static_cast<std::size_t>(rank)]; }
  Rank& rank() const { return rank_; }

 private:
  Rank& rank_;
  DeviceBuffer<std::byte> own_;
  std::vector<void*> all_;
};

/// `elements` values of T on every rank's GPU, not initialised. Constructor and destructor are collective:
/// they wait for the GPU and for all ranks, because a peer may still write; so make it before, never inside,
/// a timed loop. While the run is being stopped the constructor throws RunStopped, and the destructor waits
/// until no rank enqueues any more. The constructor proves peer access the first time. Throws
/// std::invalid_argument if ranks ask for different sizes, Skip if two GPUs have no access to each other or
/// if it should reach ranks of another process, CudaError if the memory cannot be allocated.
///
/// Pulls take turns. A copy *from* another rank's buffer is carried out by that rank's GPU, in one queue for
/// all ranks that pull from it: in the order in which their hosts enqueued the copies, also while one still
/// waits in its own stream (measured on H200; virtual_gpu/tests/semantics/pulls.cu). So a rank that enqueues
/// a pull too early holds up the others' pulls; if its pull waits for work behind one of those, all of them
/// wait for ever. The rule: enqueue a pull only once everything that it waits for has been enqueued on every
/// rank. A rank.barrier() ensures that; no GPU has to be waited for. A copy *to* another rank's buffer (a
/// push) and what a kernel reads there take no turns.
template <typename T>
class PeerBuffer {
 public:
  PeerBuffer(Rank& rank, std::size_t elements, Reach reach = Reach::kAllRanks)
      : memory_(rank, detail::checked_bytes(elements, sizeof(T)), reach), size_(elements) {}

  T* local() const { return on(memory_.rank().id()); }
  /// The buffer of that rank, at an address that this rank's GPU can read and write; null if that
  /// rank belongs to another process.
  T* on(int rank) const { return static_cast<T*>(memory_.on(rank)); }
  std::size_t size() const { return size_; }               ///< elements on each rank
  std::size_t bytes() const { return size_ * sizeof(T); }  ///< bytes on each rank
  /// What the destructor does before it frees: see PeerMemory.
  void settle() noexcept { memory_.settle(); }

 private:
  PeerMemory memory_;
  std::size_t size_;
};

}  // namespace overlap
