// The state of the modelled machine: its GPUs, its memory, and what is remembered of them. It knows neither
// host threads nor how steps are chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/foreign_words.hpp"
#include "engine/host/errors.hpp"
#include "engine/kernel/atomic_scopes.hpp"
#include "engine/kernel/words.hpp"
#include "engine/kernel_records.hpp"
#include "engine/memory.hpp"
#include "engine/model/device.hpp"
#include "engine/model/machine.hpp"
#include "engine/schedule.hpp"
#include "engine/streams/signals.hpp"
#include "engine/symbols.hpp"
#include "engine/traffic_counts.hpp"
#include "vgpu/timeline.hpp"

namespace vgpu {

/// In parts: each part has one job and a header of its own. The Runtime adds the host; blocks and their units
/// know this alone.
class MachineState {
 public:
  MachineState(Machine machine, std::optional<std::uint64_t> seed);

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
  Schedule& schedule() { return schedule_; }
  ///@}

  /// What is remembered.
  ///@{
  Errors& errors() { return errors_; }
  KernelRecords& kernels() { return kernels_; }
  TrafficCounts& traffic() { return traffic_; }
  const std::vector<TimelineEntry>& timeline() const { return timeline_; }
  ///@}

 private:
  Machine machine_;
  std::vector<TimelineEntry> timeline_;
  Devices devices_;
  Memory memory_;
  Symbols symbols_;
  Schedule schedule_;
  Errors errors_;
  KernelRecords kernels_;
  Signals signals_;
  ForeignWords foreign_words_;
  AtomicScopes atomic_scopes_;
  WordWriters word_writers_;
  TrafficCounts traffic_;
  Port host_memory_;
};

}  // namespace vgpu
