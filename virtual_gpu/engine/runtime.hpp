// The state behind the API: the machine's, and the host's.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/handle_table.hpp"
#include "engine/host/host_threads.hpp"
#include "engine/host/host_waits.hpp"
#include "engine/library_states.hpp"
#include "engine/machine_state.hpp"
#include "engine/scheduler.hpp"
#include "engine/streams/capture.hpp"
#include "engine/streams/queues.hpp"
#include "vgpu/types.h"

namespace vgpu {

struct GraphExec;

class Runtime : public MachineState {
 public:
  Runtime(Machine machine, std::optional<std::uint64_t> seed);

  /// Who does what, when.
  ///@{
  HostThreads& hosts() { return hosts_; }
  /// The host thread that runs.
  HostThread& host() { return hosts_.current(); }
  Device& current_device() { return device(host().device()); }
  Scheduler& scheduler() { return scheduler_; }
  HostWaits& waits() { return waits_; }
  Queues& queues() { return queues_; }
  Captures& captures() { return captures_; }
  LibraryStates& libraries() { return libraries_; }
  ///@}

  /// What the program's handles stand for.
  ///@{
  /// The stream behind a handle. Throws cudaErrorInvalidResourceHandle for one that was never made or is
  /// destroyed, and what Captures::check_default_stream() throws.
  Stream& stream(cudaStream_t handle);
  /// The same without the latter.
  Stream& find_stream(cudaStream_t handle);
  /// Throws cudaErrorInvalidResourceHandle.
  Event& event(cudaEvent_t handle);
  HandleTable<Event>& events() { return events_; }
  HandleTable<Graph>& graphs() { return graphs_; }
  HandleTable<GraphExec>& graph_execs() { return graph_execs_; }
  /// For the names of an executable graph's streams.
  int number_graph_exec() { return next_graph_exec_++; }
  ///@}

 private:
  HostThreads hosts_;
  Scheduler scheduler_;
  HostWaits waits_;
  HandleTable<Event> events_;
  Captures captures_;
  Queues queues_;
  HandleTable<Graph> graphs_;
  HandleTable<GraphExec> graph_execs_;
  int next_graph_exec_ = 1;
  LibraryStates libraries_;
};

/// The one runtime; made by the first call.
Runtime& runtime();
/// The same, nullptr before the first call.
Runtime* runtime_if_started();
/// Destroys it: the next call makes another one.
void destroy_runtime();
/// Called by the first CUDA call. At exit, before static objects are destroyed, all enqueued work runs. After
/// a reported fault or deadlock the exit status is kExitReported.
void watch_end();
/// True after exit() in a kernel, in a function that a stream calls, or while other host threads wait. CUDA
/// calls of static destructors then return cudaErrorCudartUnloading.
bool ended_inside();

}  // namespace vgpu
