// What every NCCL function runs in.
#pragma once

#include <new>
#include <string>

#include "engine/host/host_code.hpp"
#include "engine/host/own_thread.hpp"
#include "engine/streams/stream_call.hpp"
#include "libraries/nccl/communicator.hpp"

namespace vgpu::nccl {

/// Charges the call to the host's clock and turns exceptions into NCCL's codes; CUDA's errors and faults
/// become ncclUnhandledCudaError, as in NCCL. ncclGroupEnd() returns the group's first failure.
template <class Function>
ncclResult_t api_call(const char* name, Function function) {
  ncclResult_t code = ncclSuccess;
  std::string sentence;
  Runtime* runtime = nullptr;
  bool faulted_before = false;
  require_own_thread(name);
  if (ended_inside()) return ncclUnhandledCudaError;
  refuse_in_kernel(name);
  hb::start();
  const hb::RuntimeScope scope;
  try {
    runtime = &vgpu::runtime();
    runtime->host().spend(runtime->machine().host_call_ns);
    if (called_by_stream()) {
      throw Failure(ncclInvalidUsage,
                    "NCCL calls are not permitted in a function of cudaLaunchHostFunc, or of an algorithm");
    }
    faulted_before = runtime->errors().sticky_error() != cudaSuccess;
    runtime->errors().throw_if_faulted();
    function(*runtime);
    return ncclSuccess;
  } catch (const Failure& failure) {
    code = failure.code;
    sentence = failure.what();
  } catch (const ApiError& error) {
    code = ncclUnhandledCudaError;
    sentence = error.what();
  } catch (const std::bad_alloc&) {
    code = ncclSystemError;
    sentence = "the host has no memory left";
  } catch (const std::exception& error) {
    code = ncclInternalError;
    sentence = error.what();
  }
  if (runtime != nullptr) {
    Group& mine = group(*runtime);
    if (mine.depth > 0 && mine.failure == ncclSuccess) {
      mine.failure = code;
      mine.sentence = std::string(name) + ": " + sentence;
    }
    if (!faulted_before) runtime->errors().note(name, sentence);
    state(*runtime).last_error = runtime->errors().last_detail();
  }
  return code;
}

}  // namespace vgpu::nccl
