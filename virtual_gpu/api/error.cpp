// Errors and versions.
#include "cuda_runtime_api.h"
#include "engine/host/code_text.hpp"
#include "engine/host/own_thread.hpp"
#include "engine/runtime.hpp"

namespace {

const vgpu::CodeText& text_of(cudaError_t error) {
  static constexpr vgpu::CodeText kErrors[] = {VGPU_ERRORS(VGPU_CODE_TEXT)};
  static constexpr vgpu::CodeText kUnknown = {0, "unrecognized error code", "unrecognized error code"};
  return vgpu::find_code(kErrors, error, kUnknown);
}

}  // namespace

cudaError_t cudaPeekAtLastError() {
  vgpu::require_own_thread("cudaPeekAtLastError");
  vgpu::Runtime* runtime = vgpu::runtime_if_started();
  return runtime == nullptr ? cudaSuccess : runtime->host().last_error();
}

cudaError_t cudaGetLastError() {
  vgpu::require_own_thread("cudaGetLastError");
  vgpu::Runtime* runtime = vgpu::runtime_if_started();
  if (runtime == nullptr) return cudaSuccess;
  const cudaError_t error = runtime->host().last_error();
  runtime->host().set_last_error(runtime->errors().sticky_error());
  return error;
}

const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }

const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
