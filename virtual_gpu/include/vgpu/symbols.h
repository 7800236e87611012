// Variables of the device: __device__ and __constant__. The rewriter puts them into one section of the
// program, of which each GPU has a copy; the program's own section holds the initial values.
#pragma once

#include <cstddef>

#include "../cuda_runtime_api.h"

extern "C" {
[[gnu::weak]] extern std::byte __start_vgpu_symbols[];
[[gnu::weak]] extern std::byte __stop_vgpu_symbols[];
}

namespace vgpu {

/// The copy of the GPU whose kernel runs; nullptr in code of the host.
extern std::byte* running_symbols;

/// In a kernel the GPU's copy of a device variable; else `variable` itself.
template <class T>
T& on_this_gpu(T& variable) {
  const auto at = reinterpret_cast<const std::byte*>(&variable) - __start_vgpu_symbols;
  if (running_symbols == nullptr || at < 0 || at >= __stop_vgpu_symbols - __start_vgpu_symbols)
    return variable;
  return *reinterpret_cast<T*>(running_symbols + at);
}

void* dynamic_shared();
/// extern __shared__ T x[] outside of functions.
template <class T>
struct FileShared {};
template <class T>
auto& on_this_gpu(FileShared<T>&) {
  return *static_cast<T(*)[]>(dynamic_shared());
}

/// The address of the variable's copy on the current GPU; an error unless it is a device variable of at least
/// `bytes` bytes.
cudaError_t find_symbol(const char* call, void** address, const void* variable, std::size_t bytes);

template <class T>
cudaError_t find_part(const char* call, std::byte** address, const T& variable, std::size_t offset,
                      std::size_t bytes) {
  void* found = nullptr;
  std::size_t size = offset + bytes;
  if constexpr (requires { sizeof(T); }) size = size > sizeof(T) ? size : 0;
  const cudaError_t error = find_symbol(call, &found, &variable, size);
  *address = static_cast<std::byte*>(found) + offset;
  return error;
}

/// Prints "virtual GPUs: note: ..." once.
bool program_note(const char* sentence);

}  // namespace vgpu

template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  return vgpu::find_symbol("cudaGetSymbolAddress", address, &symbol, 0);
}
template <class T>
cudaError_t cudaGetSymbolSize(std::size_t* size, const T& symbol) {
  void* address = nullptr;
  *size = sizeof symbol;
  return cudaGetSymbolAddress(&address, symbol);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  std::byte* to = nullptr;
  const cudaError_t error = vgpu::find_part("cudaMemcpyToSymbol", &to, symbol, offset, bytes);
  return error != cudaSuccess ? error : cudaMemcpy(to, source, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, std::size_t bytes,
                                    std::size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                    cudaStream_t stream = nullptr) {
  std::byte* to = nullptr;
  const cudaError_t error = vgpu::find_part("cudaMemcpyToSymbolAsync", &to, symbol, offset, bytes);
  return error != cudaSuccess ? error : cudaMemcpyAsync(to, source, bytes, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* destination, const T& symbol, std::size_t bytes,
                                 std::size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  std::byte* from = nullptr;
  const cudaError_t error = vgpu::find_part("cudaMemcpyFromSymbol", &from, symbol, offset, bytes);
  return error != cudaSuccess ? error : cudaMemcpy(destination, from, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const T& symbol, std::size_t bytes,
                                      std::size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                      cudaStream_t stream = nullptr) {
  std::byte* from = nullptr;
  const cudaError_t error = vgpu::find_part("cudaMemcpyFromSymbolAsync", &from, symbol, offset, bytes);
  return error != cudaSuccess ? error : cudaMemcpyAsync(destination, from, bytes, kind, stream);
}
