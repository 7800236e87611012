// NCCL's communicators: who belongs together, and which calls of the ranks do.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libraries/nccl/exchange.hpp"
#include "libraries/nccl/hang_warnings.hpp"

namespace vgpu::nccl {

/// A call's failure: NCCL's code, and one sentence.
class Failure : public std::runtime_error {
 public:
  Failure(ncclResult_t code, const std::string& sentence) : std::runtime_error(sentence), code(code) {}
  ncclResult_t code;
};

/// The ranks of one ncclUniqueId.
class Clique {
 public:
  explicit Clique(int ranks) : devices_(ranks, -1), called_(ranks, 0) {}

  int ranks() const { return static_cast<int>(devices_.size()); }
  /// Rank `rank` is on `device`. Throws Failure; if others are wrong too, they learn it by `refusal`.
  void join(int rank, int device);
  bool complete() const { return joined_ == ranks(); }
  /// Why the clique never comes about; empty if it may.
  const std::string& refusal() const { return refusal_; }
  void refuse(const std::string& sentence) { refusal_ = sentence; }

  /// The call's exchange: the rank's next collective, or the next send and receive between two ranks. Throws
  /// Failure if the others' calls differ.
  std::shared_ptr<Exchange> match(Runtime& runtime, Call call);
  /// The failure that every later call gets: calls did not match; empty if there was none.
  const std::string& mismatch() const { return mismatch_; }

  double complete_at = 0;  // host clock when the last rank came, ns

 private:
  std::shared_ptr<Exchange> next_collective(Runtime& runtime, int rank);
  std::shared_ptr<Exchange> next_pair(Runtime& runtime, const Call& call);

  std::vector<int> devices_;  // by rank; -1 until it has joined
  int joined_ = 0;
  std::string refusal_, mismatch_;
  std::vector<std::uint64_t> called_;           // collectives, by rank
  std::deque<std::shared_ptr<Exchange>> open_;  // collectives that some ranks have not called
  std::uint64_t first_open_ = 0;                // number of the first of them
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Exchange>>> halves_;  // by sender and receiver
};

class NcclOperation;

/// One rank of a clique: what an ncclComm_t stands for.
struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank;
  int device;
  int max_channels;  // of its operations
  bool finalized = false;
  std::set<NcclOperation*> pending;  // enqueued, not done
  double idle_from = 0;              // modelled time at which the last operation ended, ns

  ncclComm_t handle() { return reinterpret_cast<ncclComm_t>(this); }
};

/// A call that waits for ncclGroupEnd(), with where it is to run.
struct QueuedCall {
  std::shared_ptr<Communicator> communicator;
  cudaStream_t stream;
  Call call;
};
/// A call of ncclCommInitRank.
struct QueuedSetup {
  ncclComm_t* result;
  std::shared_ptr<Clique> clique;
  int rank, device;
  int max_channels;
};

/// What a host thread has called since ncclGroupStart().
struct Group {
  int depth = 0;
  std::vector<QueuedCall> calls;
  std::vector<QueuedSetup> setups;
  ncclResult_t failure = ncclSuccess;  // of the first call that failed
  std::string sentence;
};

/// All of NCCL's state; it belongs to the Runtime.
struct State {
  std::map<ncclComm_t, std::shared_ptr<Communicator>> communicators;
  std::map<std::string, std::shared_ptr<Clique>> cliques;  // by unique id; null until the first rank comes
  std::string last_error;
  HangWarnings hangs;
};
State& state(Runtime& runtime);
Group& group(Runtime& runtime);
/// The communicator behind a handle. Throws Failure for null and for one that is gone.
std::shared_ptr<Communicator> communicator(Runtime& runtime, ncclComm_t handle);

/// Makes the cliques' communicators; blocks the host thread until all ranks have come.
void set_up(Runtime& runtime, const std::vector<QueuedSetup>& setups);
/// Enqueues the calls: for each communicator one operation.
void enqueue(Runtime& runtime, const std::vector<QueuedCall>& calls);

}  // namespace vgpu::nccl
