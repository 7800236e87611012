#include "engine/machine_state.hpp"

#include <memory>
#include <utility>

namespace vgpu {

MachineState::MachineState(Machine machine, std::optional<std::uint64_t> seed)
    : machine_(std::move(machine)), symbols_(memory_), schedule_(seed) {
  for (int id = 0; id < machine_.gpus; ++id)
    devices_.push_back(std::make_unique<Device>(id, machine_, timeline_));
}

Link MachineState::link(int from, int to) {
  Device &out = device(from), &in = device(to);
  if (machine_.between_nodes(from, to))
    return {out.rail_out(), in.rail_in(), machine_.rail_rate, machine_.rail_latency_ns};
  return {out.egress(), in.ingress(), machine_.peer_copy_rate, machine_.peer_copy_latency_ns};
}

}  // namespace vgpu
