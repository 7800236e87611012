#include "engine/runtime.hpp"

#include <utility>

#include "engine/host/own_thread.hpp"
#include "engine/host/program_end.hpp"
#include "engine/host/settings.hpp"
#include "engine/kernel/fault_handler.hpp"

namespace vgpu {
namespace {

// Not destroyed at exit: static destructors may still call CUDA, and host threads may be inside a call.
Runtime* instance = nullptr;

Devices make_devices(const Machine& machine) {
  Devices devices;
  for (int id = 0; id < machine.gpus; ++id) devices.push_back(std::make_unique<Device>(id, machine));
  return devices;
}

}  // namespace

Runtime& runtime() {
  if (instance == nullptr) {
    require_own_thread("a function of the virtual GPUs");
    instance = new Runtime(settings().load(), settings().seed());
    install_fault_handler();
    watch_program_end();
  }
  return *instance;
}

Runtime* runtime_if_started() { return instance; }

void destroy_runtime() {
  const hb::RuntimeScope scope;  // that memory goes on which blocks still wait is no access of the host
  delete std::exchange(instance, nullptr);
}

Runtime::Runtime(Machine machine, std::optional<std::uint64_t> seed)
    : machine_(std::move(machine)),
      devices_(make_devices(machine_)),
      symbols_(memory_),
      scheduler_(devices_, hosts_, seed),
      waits_(devices_, hosts_, scheduler_, errors_),
      captures_(hosts_),
      queues_(devices_, hosts_, scheduler_, waits_, captures_) {}

Link Runtime::link(int from, int to) {
  Device &out = device(from), &in = device(to);
  if (machine_.between_nodes(from, to))
    return {out.rail_out(), in.rail_in(), machine_.rail_rate, machine_.rail_latency_ns};
  return {out.egress(), in.ingress(), machine_.peer_copy_rate, machine_.peer_copy_latency_ns};
}

Stream& Runtime::stream(cudaStream_t handle) {
  Stream& stream = find_stream(handle);
  if (stream.is_default()) captures_.check_default_stream(device(stream.device()));
  return stream;
}

Stream& Runtime::find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().default_stream();
  if (handle == cudaStreamPerThread) {
    Stream*& own = hosts_.current().own_streams()[&current_device()];
    if (own == nullptr) own = &current_device().add_stream(true);
    return *own;
  }
  for (const auto& device : devices_) {
    for (const auto& stream : device->streams()) {
      if (reinterpret_cast<cudaStream_t>(stream.get()) == handle && !stream->destroyed()) return *stream;
    }
  }
  throw ApiError(cudaErrorInvalidResourceHandle, "this stream does not exist (any more)");
}

Event& Runtime::event(cudaEvent_t handle) {
  if (const auto found = events_.find(handle)) return *found;
  throw ApiError(cudaErrorInvalidResourceHandle, "this event does not exist (any more)");
}

}  // namespace vgpu
