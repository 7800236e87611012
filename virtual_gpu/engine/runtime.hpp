// The state behind the API, in parts: each part has one job and a header of its own; the runtime owns them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/foreign_words.hpp"
#include "engine/handle_table.hpp"
#include "engine/host/errors.hpp"
#include "engine/host/host_threads.hpp"
#include "engine/host/host_waits.hpp"
#include "engine/kernel/atomic_scopes.hpp"
#include "engine/kernel/words.hpp"
#include "engine/kernel_records.hpp"
#include "engine/library_states.hpp"
#include "engine/memory.hpp"
#include "engine/model/device.hpp"
#include "engine/model/machine.hpp"
#include "engine/scheduler.hpp"
#include "engine/streams/capture.hpp"
#include "engine/streams/graph.hpp"
#include "engine/streams/queues.hpp"
#include "engine/streams/signal.hpp"
#include "engine/streams/timeline.hpp"
#include "engine/symbols.hpp"
#include "engine/traffic_counts.hpp"
#include "vgpu/types.h"

namespace vgpu {

class Runtime {
 public:
  Runtime(Machine machine, std::optional<std::uint64_t> seed);

  /// What is modelled.
  ///@{
  const Machine& machine() const { return machine_; }
  const Devices& devices() const { return devices_; }
  Device& device(int id) { return *devices_[id]; }
  /// Between two GPUs: the links inside a node, or their rails.
  Link link(int from, int to);
  Memory& memory() { return memory_; }
  Symbols& symbols() { return symbols_; }
  Signals& signals() { return signals_; }
  ForeignWords& foreign_words() { return foreign_words_; }
  AtomicScopes& atomic_scopes() { return atomic_scopes_; }
  WordWriters& word_writers() { return word_writers_; }
  /// The host's memory, which serves one of the host's threads after the other.
  Port& host_memory() { return host_memory_; }
  ///@}

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

  /// What is remembered.
  ///@{
  Errors& errors() { return errors_; }
  KernelRecords& kernels() { return kernels_; }
  TrafficCounts& traffic() { return traffic_; }
  Timeline& timeline() { return timeline_; }
  LibraryStates& libraries() { return libraries_; }
  ///@}

 private:
  Machine machine_;
  Devices devices_;
  Memory memory_;
  Symbols symbols_;
  HostThreads hosts_;
  Errors errors_;
  Scheduler scheduler_;
  HostWaits waits_;
  KernelRecords kernels_;
  HandleTable<Event> events_;
  Captures captures_;
  Queues queues_;
  HandleTable<Graph> graphs_;
  HandleTable<GraphExec> graph_execs_;
  int next_graph_exec_ = 1;
  Signals signals_;
  ForeignWords foreign_words_;
  AtomicScopes atomic_scopes_;
  WordWriters word_writers_;
  TrafficCounts traffic_;
  Timeline timeline_;
  Port host_memory_;
  LibraryStates libraries_;
};

/// The one runtime; made by the first call.
Runtime& runtime();
/// The same, nullptr before the first call.
Runtime* runtime_if_started();
/// Destroys it: the next call makes another one.
void destroy_runtime();

}  // namespace vgpu
