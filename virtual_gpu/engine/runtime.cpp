#include "engine/runtime.hpp"

#include <utility>

#include "engine/host/own_thread.hpp"
#include "engine/host/settings.hpp"
#include "engine/kernel/fault_handler.hpp"

namespace vgpu {
namespace {

// Not destroyed at exit: static destructors may still call CUDA, and host threads may be inside a call.
Runtime* instance = nullptr;

}  // namespace

Runtime& runtime() {
  if (instance == nullptr) {
    require_own_thread("a function of the virtual GPUs");
    instance = new Runtime(settings().load(), settings().seed());
    install_fault_handler(instance);
    watch_end();
  }
  return *instance;
}

Runtime* runtime_if_started() { return instance; }

void destroy_runtime() {
  const hb::RuntimeScope scope;  // that memory goes on which blocks still wait is no access of the host
  install_fault_handler(nullptr);
  delete std::exchange(instance, nullptr);
}

Runtime::Runtime(Machine machine, std::optional<std::uint64_t> seed)
    : MachineState(std::move(machine), seed),
      scheduler_(devices(), hosts_, schedule()),
      waits_(*this, hosts_, scheduler_),
      captures_(hosts_),
      queues_(devices(), hosts_, schedule(), captures_) {}

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
  for (const auto& device : devices()) {
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
