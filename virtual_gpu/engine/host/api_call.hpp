// What every API function runs in.
#pragma once

#include <new>
#include <string>

#include "engine/host/host_code.hpp"
#include "engine/host/own_thread.hpp"
#include "engine/runtime.hpp"
#include "engine/streams/stream_call.hpp"

namespace vgpu {

/// Charges the call to the host's clock, turns exceptions into CUDA's codes and keeps them for
/// cudaGetLastError.
template <class Function>
cudaError_t api_call(const char* name, Function function) {
  cudaError_t code = cudaSuccess;
  std::string sentence;
  Runtime* state = nullptr;
  bool faulted_before = false;
  require_own_thread(name);
  if (ended_inside()) return cudaErrorCudartUnloading;
  refuse_in_kernel(name);
  hb::start();
  const hb::RuntimeScope scope;
  try {
    state = &runtime();
    charge_host_code(*state);
    state->host().spend(state->machine().host_call_ns);
    if (called_by_stream()) {
      throw ApiError(cudaErrorNotPermitted,
                     "CUDA calls are not permitted in a function of cudaLaunchHostFunc, or of an algorithm");
    }
    faulted_before = state->errors().sticky_error() != cudaSuccess;
    state->errors().throw_if_faulted();
    function(*state);
    return cudaSuccess;
  } catch (const ApiError& error) {
    code = error.code();
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
    if (code != cudaErrorNotReady && !called_by_stream()) state->host().set_last_error(code);
    // After a fault every call fails; the one that met it says most.
    if (!faulted_before) state->errors().note(name, sentence, code != cudaErrorNotReady);
  }
  return code;
}

/// The same of a call that only orders: left out (hb::left_out()), it does nothing and succeeds.
template <class Function>
cudaError_t ordering_call(const char* name, Function function) {
  return hb::left_out(name) ? cudaSuccess : api_call(name, function);
}

}  // namespace vgpu
