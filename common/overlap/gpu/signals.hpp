// Words in peer memory by which one rank's GPU signals to another one's that data have arrived.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// `count` signals on every rank. A signal is a word that grows: in call 1 of an algorithm it is raised to 1,
/// in call 2 to 2, and so on, and a wait in call e holds until it is at least e. Compared by their signed
/// difference, words may overflow. So no signal is ever reset, and no call waits for the one before. Each
/// signal of a rank has one raising rank, which raises it at most once a call. Collective as PeerBuffer is.
class Signals {
 public:
  /// The number before the first call of signals made from now on, and with it what they begin with. Tests
  /// begin a few calls before the words overflow.
  inline static std::uint32_t before_first = 0;

  /// All of them `before_first`. Throws as PeerBuffer does.
  Signals(Rank& rank, int count, Reach reach = Reach::kAllRanks);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// A new call: every rank calls it once per run(), before the first raise() and await().
  void begin_call() {
    ++epoch_;
    begun_ = true;
  }
  /// Raises signal `i` of rank `peer` once the stream's earlier work is done. A waiter that sees it sees that
  /// work, too. Throws std::logic_error if this rank has raised it in this call before, or before the first
  /// begin_call(), or if the stream is being captured into a graph (the epoch would be frozen); RunStopped
  /// while the run is being stopped.
  void raise(int peer, int i, cudaStream_t stream);
  /// The stream's later work waits for this rank's signal `i` of this call. Any number of streams may wait.
  /// Throws as raise() does.
  void await(int i, cudaStream_t stream);

  /// For kernels: the word of signal `i` on rank `peer`, and the value that it gets in this call. Read and
  /// write it by cuda::atomic_ref with acquire and release at system scope.
  std::uint32_t* word(int peer, int i) const { return words_.on(peer) + i; }
  std::uint32_t epoch() const { return epoch_; }  ///< number of the call

 private:
  /// Registers the words with the run's stop while this object lives.
  class Registration {
   public:
    explicit Registration(Signals& signals);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    Signals& signals_;
  };

  void check(int i, cudaStream_t stream) const;

  Rank& rank_;
  int count_;
  PeerBuffer<std::uint32_t> words_;
  std::uint32_t epoch_ = before_first;
  bool begun_ = false;
  std::vector<std::atomic<std::uint32_t>> raised_;   // last epoch, by peer and signal
  std::vector<std::atomic<std::uint32_t>> awaited_;  // last epoch, by signal
  std::optional<Registration> registration_;
};

}  // namespace overlap
