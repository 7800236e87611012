// Errors and versions.
#include "cuda_runtime_api.h"
#include "runtime.hpp"

cudaError_t cudaPeekAtLastError() {
  vgpu::Runtime* runtime = vgpu::runtime_if_started();
  return runtime == nullptr ? cudaSuccess : runtime->host().last_error;
}

cudaError_t cudaGetLastError() {
  vgpu::Runtime* runtime = vgpu::runtime_if_started();
  if (runtime == nullptr) return cudaSuccess;
  const cudaError_t error = runtime->host().last_error;
  runtime->host().last_error = runtime->sticky_error();
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define VGPU_CASE(name, value, text) \
  case name:                         \
    return #name;
    VGPU_ERRORS(VGPU_CASE)
#undef VGPU_CASE
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define VGPU_CASE(name, value, text) \
  case name:                         \
    return text;
    VGPU_ERRORS(VGPU_CASE)
#undef VGPU_CASE
  }
  return "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
