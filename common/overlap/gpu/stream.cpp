#include "overlap/gpu/stream.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/kept_handles.hpp"

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
  std::atomic<int>& count = streams[static_cast<std::size_t>(device)];
  const int queues = std::min(backend::hardware_queues(), kMaxStreams);
  while (++count > queues) {
    --count;
    if (drop_idle_stream(device)) continue;  // one that was only kept for later
    throw std::runtime_error("one stream too many on GPU " + std::to_string(device) + ": only " +
                             std::to_string(queues) +
                             " are sure not to hold each other up (CUDA_DEVICE_MAX_CONNECTIONS)");
  }
}

StreamPlace::~StreamPlace() {
  if (device_ >= 0) --streams[static_cast<std::size_t>(device_)];
}

int living_streams(int device) { return streams.at(static_cast<std::size_t>(device)); }

std::string memory_asked_for(std::size_t bytes) {
  const std::string asked = std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB are requested";
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return asked;
  return asked + ", " + std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB are free";
}

std::size_t checked_bytes(std::size_t elements, std::size_t element_bytes) {
  if (elements > std::numeric_limits<std::size_t>::max() / element_bytes)
    throw std::length_error("a buffer of that many elements has more bytes than there are addresses");
  return elements * element_bytes;
}

DeviceMemory::DeviceMemory(int device, std::size_t elements, std::size_t element_bytes)
    : device_(device), size_(elements) {
  const std::size_t bytes = checked_bytes(elements, element_bytes);
  if (bytes == 0) return;
  const DeviceGuard guard(device);
  try {
    CUDA_CHECK(cudaMalloc(&memory_.handle, bytes));
  } catch (CudaError& error) {
    if (error.code() == cudaErrorMemoryAllocation) error.add_detail(memory_asked_for(bytes));
    throw;
  }
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : memory_(std::move(other.memory_)), device_(other.device_), size_(std::exchange(other.size_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  memory_ = std::move(other.memory_);
  device_ = other.device_;
  size_ = std::exchange(other.size_, 0);
  return *this;
}

DeviceMemory::~DeviceMemory() = default;

PinnedMemory::PinnedMemory(std::size_t elements, std::size_t element_bytes) : size_(elements) {
  const std::size_t bytes = checked_bytes(elements, element_bytes);
  if (bytes == 0) return;
  const cudaError_t error = cudaMallocHost(&memory_.handle, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is reported here; clears it, so that the next check of a kernel launch does not
                         // report it again
    throw std::bad_alloc();
  }
  CUDA_CHECK(error);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  memory_ = std::move(other.memory_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

PinnedMemory::~PinnedMemory() = default;

}  // namespace overlap::detail
