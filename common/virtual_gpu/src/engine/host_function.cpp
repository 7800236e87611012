#include "engine/host_function.hpp"

#include "cuda_runtime_api.h"
#include "engine/stream_call.hpp"

namespace vgpu {

void HostFunction::begin(double now) {
  runtime_.in_host_function = true;
  call_in(*stream, site, [this] { function_(data_); });
  runtime_.in_host_function = false;
  finish(now + runtime_.machine.host_call_ns);
}

}  // namespace vgpu

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  using namespace vgpu;
  return api_call("cudaLaunchHostFunc", [&](Runtime& runtime) {
    if (function == nullptr) throw ApiError(cudaErrorInvalidValue, "the function is null");
    runtime.enqueue(runtime.stream(stream), std::make_unique<HostFunction>(runtime, function, data));
  });
}
