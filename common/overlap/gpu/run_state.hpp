// What the ranks of one run share. How host threads meet, and how a run is stopped, differs between real and
// virtual GPUs: gpu/backend/ has a RunState for each.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct ncclComm;

namespace overlap {

class Processes;
class RankHandles;

/// Words that streams wait for. Stopping a run opens them: each becomes so large that no wait holds.
struct SignalWords {
  static constexpr int kPinned = -1;  // in the host's memory
  int rank;                           // whose words they are
  int device;                         // where they are, or kPinned
  std::uint32_t* words;
  int count;
  std::string name;                           // for reports: "signal", "gate"
  const std::atomic<std::uint32_t>* awaited;  // the last value that a stream was made to wait for, by word
  // The last value that this rank's host has enqueued a raise to, by rank and word; null if it raises none.
  const std::atomic<std::uint32_t>* raised = nullptr;
  int set = 0;  // which of its Signals, counted alike on all ranks
};

/// What stopping adds to a word: no wait is that far ahead, and compared as CUDA does (by signed difference)
/// the word is ahead of all.
inline constexpr std::uint32_t kOpen = std::uint32_t{1} << 30;

/// The ranks of this process. Where there are several processes, a rank's number here begins with 0 in each.
class RunState {
 public:
  /// `devices`: GPUs that the ranks are spread over.
  static std::unique_ptr<RunState> make(int size, int devices);
  virtual ~RunState() = default;

  /// Runs body(rank) on host threads and returns when all have joined.
  virtual void run(const std::function<void(int)>& body) = 0;
  /// Stops the run if an exception passes through `rank`. In a run that is being stopped, returns once
  /// nothing on the GPUs waits any more; if an exception passes, it also leave()s.
  virtual void stop_if_unwinding(int rank) noexcept = 0;
  /// Called by a rank that enqueues no more, in a run that is being stopped: returns once all ranks have left
  /// and their GPUs are idle, or 3 s after the stop. Kernels whose waits were opened continue, and may access
  /// this rank's memory. (Virtual GPUs end such kernels.)
  virtual void leave(int /*rank*/) noexcept {}
  /// False if the run is being stopped.
  virtual bool barrier(int rank) = 0;
  /// Has `call` made by the thread that called run(), and returns after it: MPI belongs to that thread. In a
  /// run that is being stopped it may return without the call.
  virtual void on_main_thread(const std::function<void()>& call) = 0;
  /// Stops the run because of that rank. Only the first call does anything.
  virtual void stop(int rank) = 0;
  virtual bool stopping() const = 0;
  virtual unsigned* abort_flag() = 0;
  /// Called once a rank has caught its error. May end the process, if the GPU is beyond help.
  virtual void failed(int /*rank*/, const std::exception_ptr& /*error*/) {}
  /// For reports: what a rank is about to wait for; "" afterwards.
  virtual void waits_for(int /*rank*/, const char* /*what*/) {}
  /// What stopping has to open or abort.
  virtual void add(const SignalWords& /*words*/) {}
  virtual void remove(const std::atomic<std::uint32_t>* /*awaited*/) {}
  virtual void add(ncclComm* /*communicator*/) {}
  /// False if stopping has aborted it: then it is gone.
  virtual bool remove(ncclComm* /*communicator*/) { return true; }

  /// At a rank's end. True if the run has taken its handles and looks after its communicators: they serve
  /// later runs if this one ends well. False if the rank is to destroy them.
  virtual bool keep(int rank, std::unique_ptr<RankHandles>& handles) = 0;
  /// By rank 0, before a barrier: fills `communicators` with those that a run of as many ranks has left, if
  /// there are any.
  virtual void take_communicators(bool /*copy_engines*/) {}

  std::array<std::vector<ncclComm*>, 2> communicators;  // by rank; plain ones, and those for copy engines

  int first = 0;                    // the number, among the ranks of all processes, of the first one here
  Processes* processes = nullptr;   // if there are several
  std::string from_all;             // of Rank::exchange(): the values of all processes
  int culprit = -1;                 // the rank that was first to fail
  std::vector<const void*> slots;   // of Rank::exchange()
  std::string peer_access_refused;  // why there is none: by rank 0, before a barrier
};

/// The error's own sentence.
std::string sentence_of(const std::exception_ptr& error);

/// Stops the run that is under way in this process, if there is one, because of a reason that is no rank's.
/// Called by the watchdog of --timeout, from a thread of its own. Returns false if there is none (or GPUs are
/// virtual: they cannot hang).
bool stop_active_run(const std::string& reason);

}  // namespace overlap
