#include "host_function.hpp"

#include "cuda_runtime_api.h"

namespace vgpu {
namespace {

Fiber scheduler_fiber;
Fiber* function_fiber = nullptr;
HostFunction* running = nullptr;

}  // namespace

void HostFunction::begin(double now) {
  FiberPool& fibers = stream->contexts.fibers(0, 0);
  running = this;
  function_fiber = &fibers.get(&HostFunction::fiber_entry);
  runtime_.in_host_function = true;
  switch_fiber(scheduler_fiber, *function_fiber);
  runtime_.in_host_function = false;
  fibers.put(*function_fiber);
  finish(now + runtime_.machine.host_call_ns);
}

void HostFunction::fiber_entry() {
  running->call();
  switch_fiber(*function_fiber, scheduler_fiber);
}

void HostFunction::call() {
  hb::enter(stream->contexts.own());
  hb::push_callers(site);
  function_(data_);
  hb::pop_callers(site);
  hb::enter(hb::runtime_context());
}

}  // namespace vgpu

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  using namespace vgpu;
  return api_call("cudaLaunchHostFunc", [&](Runtime& runtime) {
    if (function == nullptr) throw ApiError(cudaErrorInvalidValue, "the function is null");
    runtime.enqueue(runtime.stream(stream), std::make_unique<HostFunction>(runtime, function, data));
  });
}
