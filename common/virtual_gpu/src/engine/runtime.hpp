// The state behind the API: devices, memory, scheduler, the host's clock, errors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/capture.hpp"
#include "engine/device.hpp"
#include "engine/graph.hpp"
#include "engine/host_thread.hpp"
#include "engine/machine.hpp"
#include "engine/memory.hpp"
#include "engine/scheduler.hpp"
#include "engine/signal.hpp"
#include "libraries/cublas/handle.hpp"
#include "vgpu/timeline.hpp"
#include "vgpu/types.h"

namespace vgpu {

namespace nccl {
struct State;  // libraries/nccl/communicator.hpp
}

/// An API call's failure: CUDA's code, and one sentence that says what the code does not.
class ApiError : public std::runtime_error {
 public:
  ApiError(cudaError_t code, const std::string& sentence) : std::runtime_error(sentence), code(code) {}
  cudaError_t code;
};

class Runtime {
 public:
  Runtime(Machine machine, std::optional<std::uint64_t> seed);

  Device& device(int id) { return *devices[id]; }
  /// The host thread that runs.
  HostThread& host() { return hosts.current(); }
  Device& current_device() { return *devices[host().device]; }
  /// The stream behind a handle. Throws cudaErrorInvalidResourceHandle for one that was never made or is
  /// destroyed, and what Captures::check_default_stream() throws.
  Stream& stream(cudaStream_t handle);
  /// The same without the latter.
  Stream& find_stream(cudaStream_t handle);
  Event& event(cudaEvent_t handle);

  /// Adds `operation` to the stream, behind what CUDA's rules order it after. Returns its token; null if the
  /// stream captures.
  Token enqueue(Stream& stream, std::unique_ptr<Operation> operation);
  /// Adds a node of a graph that runs to the stream of its branch. It knows what it waits for.
  void enqueue_node(Stream& stream, std::unique_ptr<Operation> node);
  /// Blocks the host until all tokens are complete (nullptr counts as complete). Throws after a deadlock or a
  /// fault.
  void wait(const std::vector<Token>& tokens);
  void wait(const Token& token) { wait(std::vector<Token>{token}); }
  /// Blocks the calling host thread until `reached` holds, which others bring about. `what` completes the
  /// report's "waits for". Throws after a deadlock, a fault or stop().
  void block_host(const std::function<bool()>& reached, const std::string& what);
  /// The same for any wait, without exceptions. Reports a deadlock, after which all waits are over.
  void block_until(const HostThread::Wait& wait);
  /// Lets everybody else do what is due by now. For calls that only ask.
  void yield();
  /// Puts what completes with `done` into the queue of pulls to which `operation` belongs in a stream of GPU
  /// `device`, as enqueued now. Returns the queue; nullptr if it belongs to none.
  PullQueue* queue_pull(const Operation& operation, int device, const Token& done);
  /// Completions of all that the streams of a device hold.
  std::vector<Token> pending(Device& device);
  /// What a wait for the stream waits for: its own work and, for the default stream, that of all blocking
  /// streams.
  std::vector<Token> pending(Stream& stream);
  /// True if the host could know by now that all tokens are complete.
  bool observe(const std::vector<Token>& tokens);
  bool observe(const Token& token) { return observe(std::vector<Token>{token}); }

  /// A kernel went wrong. Every later call fails with `code`, as after a real GPU's sticky error.
  void fault(cudaError_t code, const std::string& sentence);
  void throw_if_faulted() const;
  /// `call` fails: keeps the sentence and, if print_errors() was asked for, prints it; only an `error`.
  void note_error(const char* call, const std::string& sentence, bool error = true);
  /// Gives up all that the GPUs hold, and wakes all host threads with an error. From here to the end of
  /// run_host_threads() nothing is enqueued and nothing blocks.
  void stop();
  bool stopping() const { return stopping_; }
  cudaError_t sticky_error() const { return fault_ ? fault_->code : cudaSuccess; }

  Machine machine;
  std::vector<std::unique_ptr<Device>> devices;
  Memory memory;
  HostThreads hosts;
  Scheduler scheduler;
  std::map<const void*, std::size_t> dynamic_shared_limits;           // cudaFuncSetAttribute, by kernel
  std::set<std::pair<const void*, std::string>> host_pointers_named;  // kernels and their parameters
  std::map<Event*, std::unique_ptr<Event>> events;
  Captures captures{*this};
  std::map<Graph*, std::shared_ptr<Graph>> graphs;
  std::map<GraphExec*, std::shared_ptr<GraphExec>> graph_execs;
  int next_graph = 1;
  std::map<CublasHandle*, std::unique_ptr<CublasHandle>> cublas_handles;
  Signals signals;
  std::map<std::pair<int, int>, Traffic> traffic;  // by source and destination
  std::vector<TimelineEntry> timeline;             // if it is recorded
  std::shared_ptr<nccl::State> nccl;               // null before the first NCCL call
  std::string last_error_detail;
  BlockRange blocks;            // of each kernel that is enqueued: those that run
  double host_memory_free = 0;  // when the host memory is free for the next host_work(), ns
  bool deadlock_reported = false;
  bool in_host_function = false;  // a function of cudaLaunchHostFunc is running

 private:
  void report_deadlock();
  /// Waits are over when what they wait for has happened, and when it never will.
  bool given_up() const { return fault_ || stopping_; }
  void throw_if_given_up() const;

  friend class HostThreads;
  bool stopping_ = false;
  std::optional<ApiError> fault_;
  std::uint64_t next_operation_ = 1;
  std::uint64_t idle_queries_ = 0;
};

/// The one runtime; made by the first call.
Runtime& runtime();
/// The same, nullptr before the first call.
Runtime* runtime_if_started();

/// Ends the program with one sentence, which names the call, if another thread of the operating system has
/// made a call before: host threads here are fibers, and nothing of the runtime is locked.
void require_own_thread(const char* call);

/// What every API function runs in: charges the call to the host's clock, turns exceptions into CUDA's codes
/// and keeps them for cudaGetLastError.
template <class Function>
cudaError_t api_call(const char* name, Function function);

}  // namespace vgpu

#include "engine/api_call.inl"
