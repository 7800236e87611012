// How the host waits for the GPUs and for other host threads, and when it gives up.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/machine_state.hpp"
#include "engine/scheduler.hpp"

namespace vgpu {

/// All of the following is about the host thread that runs.
class HostWaits {
 public:
  HostWaits(MachineState& machine, HostThreads& hosts, Scheduler& scheduler)
      : machine_(machine), hosts_(hosts), scheduler_(scheduler) {}

  /// Blocks the host until all tokens are complete, or nullptr. Throws after a deadlock or a fault.
  void wait(const std::vector<Token>& tokens);
  void wait(const Token& token) { wait(std::vector<Token>{token}); }
  /// Blocks the calling host thread until `reached` holds; `what` completes the report's "waits for". Throws
  /// after a deadlock, a fault or stop().
  void block_host(const std::function<bool()>& reached, const std::string& what);
  /// The same for any wait, without exceptions. Reports a deadlock, after which all waits are over.
  void block_until(const HostThread::Wait& wait);
  /// Lets everybody else do what is due by now. For calls that only ask.
  void yield();
  /// True if the host could know by now that all tokens are complete.
  bool observe(const std::vector<Token>& tokens);
  bool observe(const Token& token) { return observe(std::vector<Token>{token}); }

  /// At the program's end: runs all that was enqueued. Returns false after a report of what waits for ever.
  bool drain();

  /// Discards all enqueued work and wakes all host threads with an error: HostThreads::stop().
  void stop();

  bool deadlock_reported() const { return deadlock_reported_; }

 private:
  void give_up_for_deadlock();
  /// Waits are over when what they wait for has happened, and when it never will.
  bool given_up() const { return machine_.errors().faulted() || hosts_.stopping(); }
  void throw_if_given_up() const;

  MachineState& machine_;
  HostThreads& hosts_;
  Scheduler& scheduler_;
  bool deadlock_reported_ = false;
  std::uint64_t idle_queries_ = 0;
};

}  // namespace vgpu
