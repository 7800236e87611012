#include "overlap/stream.hpp"

#include <array>
#include <atomic>
#include <string>

namespace overlap::detail {
namespace {

constexpr int kMaxDevices = 64;
std::array<std::atomic<int>, kMaxDevices> streams;  // that live, by GPU

}  // namespace

StreamPlace::StreamPlace(int device) : device_(device) {
  if (device < 0 || device >= kMaxDevices) {
    device_ = -1;  // the call that makes the stream will refuse it
    return;
  }
  if (++streams[static_cast<std::size_t>(device)] <= kMaxStreams) return;
  --streams[static_cast<std::size_t>(device)];
  throw std::runtime_error("the 33rd stream on GPU " + std::to_string(device) +
                           ": only 32 are sure not to hold each other up (CUDA_DEVICE_MAX_CONNECTIONS)");
}

StreamPlace::~StreamPlace() {
  if (device_ >= 0) --streams[static_cast<std::size_t>(device_)];
}

std::string memory_asked_for(std::size_t bytes) {
  const std::string asked = std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB are asked for";
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return asked;
  return asked + ", " + std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB are free";
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  try {
    CUDA_CHECK(cudaMalloc(&memory, bytes));
  } catch (CudaError& error) {
    if (error.code() == cudaErrorMemoryAllocation) error.add_detail(memory_asked_for(bytes));
    throw;
  }
  return memory;
}

}  // namespace overlap::detail
