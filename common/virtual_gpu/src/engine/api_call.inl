// Part of runtime.hpp: the body of api_call().
#pragma once

#include <new>

namespace vgpu {

template <class Function>
cudaError_t api_call(const char* name, Function function) {
  cudaError_t code = cudaSuccess;
  std::string sentence;
  Runtime* state = nullptr;
  bool faulted_before = false;
  require_own_thread(name);
  hb::start();
  const hb::RuntimeScope scope;
  try {
    state = &runtime();
    state->host().now += state->machine.host_call_ns;
    if (state->in_host_function) {
      throw ApiError(cudaErrorNotPermitted,
                     "CUDA calls are not permitted in a function of cudaLaunchHostFunc");
    }
    faulted_before = state->sticky_error() != cudaSuccess;
    state->throw_if_faulted();
    function(*state);
    return cudaSuccess;
  } catch (const ApiError& error) {
    code = error.code;
    sentence = error.what();
  } catch (const std::bad_alloc&) {
    code = cudaErrorMemoryAllocation;
    sentence = "the host has no memory left";
  } catch (const std::exception& error) {
    code = cudaErrorUnknown;
    sentence = error.what();
  }
  if (state != nullptr) {
    // cudaErrorNotReady is an answer, not an error that cudaGetLastError should find later. A function of
    // cudaLaunchHostFunc stands for another thread, which has a last error of its own.
    if (code != cudaErrorNotReady && !state->in_host_function) state->host().last_error = code;
    // After a fault every call fails; the one that met it says most.
    if (!faulted_before) state->note_error(name, sentence, code != cudaErrorNotReady);
  }
  return code;
}

}  // namespace vgpu
