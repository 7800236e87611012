// Streams and events; functions of the host in a stream.
#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"
#include "engine/streams/host_function.hpp"

namespace vgpu {
namespace {

void create_stream(Runtime& runtime, cudaStream_t* handle, unsigned int flags) {
  if ((flags & ~cudaStreamNonBlocking) != 0) {
    throw ApiError(cudaErrorInvalidValue,
                   "only the flags cudaStreamDefault and cudaStreamNonBlocking are supported");
  }
  const bool blocking = (flags & cudaStreamNonBlocking) == 0;
  *handle = reinterpret_cast<cudaStream_t>(&runtime.current_device().add_stream(blocking));
}

void create_event(Runtime& runtime, cudaEvent_t* handle, unsigned int flags) {
  if ((flags & ~(cudaEventBlockingSync | cudaEventDisableTiming)) != 0) {
    throw ApiError(cudaErrorInvalidValue, "only the flags BlockingSync and DisableTiming are supported");
  }
  const bool timing = (flags & cudaEventDisableTiming) == 0;
  auto event = std::make_shared<Event>(runtime.host().device(), timing);
  *handle = reinterpret_cast<cudaEvent_t>(runtime.events().add(std::move(event)));
}

void check_timed(const Event& event) {
  if (!event.timing())
    throw ApiError(cudaErrorInvalidResourceHandle, "the event was made with cudaEventDisableTiming");
  if (event.was_captured())
    throw ApiError(cudaErrorCapturedEvent, "the event was last recorded in a capturing stream");
  if (!event.last_record()) throw ApiError(cudaErrorInvalidResourceHandle, "the event was never recorded");
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return api_call("cudaStreamCreate",
                  [&](Runtime& runtime) { create_stream(runtime, stream, cudaStreamDefault); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return api_call("cudaStreamCreateWithFlags",
                  [&](Runtime& runtime) { create_stream(runtime, stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int) {
  return api_call("cudaStreamCreateWithPriority",
                  [&](Runtime& runtime) { create_stream(runtime, stream, flags); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api_call("cudaDeviceGetStreamPriorityRange", [&](Runtime&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;  // as on GPUs since Volta
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return api_call("cudaStreamDestroy", [&](Runtime& runtime) {
    Stream& stream = runtime.stream(handle);
    if (stream.is_default() || handle == cudaStreamPerThread)
      throw ApiError(cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    runtime.captures().forget(stream);
    stream.destroy();  // its work still runs
    runtime.device(stream.device()).collect_streams();
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return ordering_call("cudaStreamSynchronize", [&](Runtime& runtime) {
    Stream& stream = runtime.stream(handle);
    runtime.captures().check_wait(stream);
    runtime.waits().wait(runtime.queues().pending(stream));
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return ordering_call("cudaStreamQuery", [&](Runtime& runtime) {
    Stream& stream = runtime.stream(handle);
    runtime.captures().check_wait(stream);
    if (!runtime.waits().observe(runtime.queues().pending(stream)))
      throw ApiError(cudaErrorNotReady, "work is pending");
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned int flags) {
  return ordering_call("cudaStreamWaitEvent", [&](Runtime& runtime) {
    if (flags != cudaEventWaitDefault)
      throw ApiError(cudaErrorInvalidValue, "only the flag cudaEventWaitDefault is supported");
    Stream& stream = runtime.stream(stream_handle);
    const Event& event = runtime.event(event_handle);
    if (stream.captures() || event.was_captured()) return runtime.captures().wait(stream, event);
    // The wait holds the token of the record that is the last one now; later records do not matter to it. An
    // event that was never recorded is complete.
    if (!event.last_record()) return;
    auto wait = std::make_unique<WaitOperation>();
    wait->wait_for(event.last_record());
    runtime.queues().enqueue(stream, std::move(wait));
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return api_call("cudaEventCreate",
                  [&](Runtime& runtime) { create_event(runtime, event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return api_call("cudaEventCreateWithFlags", [&](Runtime& runtime) { create_event(runtime, event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return api_call("cudaEventDestroy",
                  [&](Runtime& runtime) { runtime.events().remove(&runtime.event(handle)); });
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t stream_handle) {
  return ordering_call("cudaEventRecord", [&](Runtime& runtime) {
    Event& event = runtime.event(event_handle);
    Stream& stream = runtime.stream(stream_handle);
    if (event.device() != stream.device()) {
      throw ApiError(cudaErrorInvalidResourceHandle,
                     "the event belongs to GPU " + std::to_string(event.device()) + ", the stream to GPU " +
                         std::to_string(stream.device()));
    }
    if (stream.captures()) return runtime.captures().record(event, stream);
    event.record(runtime.queues().enqueue(stream, std::make_unique<RecordOperation>()));
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return ordering_call("cudaEventSynchronize", [&](Runtime& runtime) {
    const Event& event = runtime.event(handle);
    runtime.captures().check_wait(event);
    runtime.waits().wait(event.last_record());
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return ordering_call("cudaEventQuery", [&](Runtime& runtime) {
    const Event& event = runtime.event(handle);
    runtime.captures().check_wait(event);
    if (!runtime.waits().observe(event.last_record()))
      throw ApiError(cudaErrorNotReady, "the event is pending");
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t stop_handle) {
  return api_call("cudaEventElapsedTime", [&](Runtime& runtime) {
    const Event& start = runtime.event(start_handle);
    const Event& stop = runtime.event(stop_handle);
    check_timed(start);
    check_timed(stop);
    if (start.device() != stop.device()) {
      throw ApiError(cudaErrorInvalidResourceHandle, "the events belong to different GPUs");
    }
    if (!runtime.waits().observe(start.last_record()) || !runtime.waits().observe(stop.last_record())) {
      throw ApiError(cudaErrorNotReady, "an event is pending");
    }
    *milliseconds = static_cast<float>((stop.last_record()->time - start.last_record()->time) * 1e-6);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return api_call("cudaLaunchHostFunc", [&](Runtime& runtime) {
    if (function == nullptr) throw ApiError(cudaErrorInvalidValue, "the function is null");
    runtime.queues().enqueue(runtime.stream(stream), std::make_unique<HostFunction>(runtime, function, data));
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                  unsigned int flags) {
  struct Callback {
    cudaStream_t stream;
    cudaStreamCallback_t function;
    void* data;
  };
  if (function == nullptr || flags != 0)
    return api_call("cudaStreamAddCallback", [](Runtime&) {
      throw ApiError(cudaErrorInvalidValue, "the function is null, or the flags are not 0");
    });
  const auto call = [](void* callback) {
    const std::unique_ptr<Callback> own(static_cast<Callback*>(callback));
    own->function(own->stream, cudaSuccess, own->data);
  };
  return cudaLaunchHostFunc(stream, call, new Callback{stream, function, data});
}
