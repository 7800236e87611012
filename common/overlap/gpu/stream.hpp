// Owners of CUDA objects: what a constructor creates, the destructor gives back, also when an exception
// passes. All are movable and not copyable. None changes the caller's current device, and no destructor
// throws.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <utility>

#include "overlap/gpu/check.hpp"

namespace overlap {

/// Makes `device` the calling thread's current device until the end of the scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    CUDA_CHECK(cudaGetDevice(&previous_));
    CUDA_CHECK(cudaSetDevice(device));
  }
  ~DeviceGuard() { cudaSetDevice(previous_); }

  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = 0;
};

namespace detail {

// Every owner calls this before it releases its object, which may wait for the GPU. While an exception passes
// through a rank, its GPU and others may wait for each other: so the run is stopped first, which opens all
// signals.
void before_release() noexcept;

// A handle that is destroyed by kDestroy, unless it is null. CUDA's destroy functions know the handle's
// device, so none of them needs the current device to be set.
template <typename Handle, auto kDestroy>
class Owner {
 public:
  Owner() = default;
  Owner(Owner&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    Owner taken(std::move(other));  // `taken` destroys the old handle at the end of this function
    std::swap(handle, taken.handle);
    return *this;
  }
  ~Owner() {
    if (handle == nullptr) return;
    before_release();
    kDestroy(handle);
  }

  Handle handle = nullptr;
};

// For errors: "16 MiB are requested, 3 of 1024 MiB are free" on the current device.
std::string memory_asked_for(std::size_t bytes);

// The bytes of so many elements. Throws std::length_error if they do not fit in a std::size_t.
std::size_t checked_bytes(std::size_t elements, std::size_t element_bytes);

// The untyped part of DeviceBuffer, compiled once.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t elements, std::size_t element_bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;  // `other` is empty afterwards
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  void* data() const { return memory_.handle; }
  std::size_t size() const { return size_; }
  int device() const { return device_; }

 private:
  Owner<void*, cudaFree> memory_;
  int device_;
  std::size_t size_;  // elements
};

// The same for a PinnedBuffer.
class PinnedMemory {
 public:
  PinnedMemory(std::size_t elements, std::size_t element_bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();

  void* data() const { return memory_.handle; }
  std::size_t size() const { return size_; }

 private:
  Owner<void*, cudaFreeHost> memory_;
  std::size_t size_;
};

}  // namespace detail

/// Streams that one GPU can have here: as many as CUDA gives it hardware queues
/// (CUDA_DEVICE_MAX_CONNECTIONS). With more, a stream that waits can hold up one that it waits for.
inline constexpr int kMaxStreams = 32;

namespace detail {

// One of a GPU's kMaxStreams places.
class StreamPlace {
 public:
  explicit StreamPlace(int device);  // throws std::runtime_error if all are taken
  StreamPlace(StreamPlace&& other) noexcept : device_(std::exchange(other.device_, -1)) {}
  StreamPlace& operator=(StreamPlace&& other) noexcept {
    std::swap(device_, other.device_);
    return *this;
  }
  ~StreamPlace();

 private:
  int device_;
};

// Places of that GPU that are taken.
int living_streams(int device);

}  // namespace detail

/// Priority of a stream's pending work. A hint: virtual GPUs ignore it.
enum class StreamPriority { kNormal, kHigh };

/// A stream of one GPU, a non-blocking one: no implicit order with the default stream. Throws
/// std::runtime_error for one more than a GPU has hardware queues: the 33rd, or fewer if
/// CUDA_DEVICE_MAX_CONNECTIONS says so.
class Stream {
 public:
  /// Creates a stream on `device`. Throws CudaError.
  explicit Stream(int device, StreamPriority priority = StreamPriority::kNormal)
      : place_(device), device_(device) {
    const DeviceGuard guard(device);
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA_CHECK(cudaStreamCreateWithPriority(&stream_.handle, cudaStreamNonBlocking,
                                            priority == StreamPriority::kHigh ? greatest : least));
  }

  cudaStream_t get() const { return stream_.handle; }  ///< the handle
  operator cudaStream_t() const { return get(); }      ///< for CUDA calls and <<<...>>>
  int device() const { return device_; }               ///< the GPU that it belongs to

 private:
  detail::StreamPlace place_;
  detail::Owner<cudaStream_t, cudaStreamDestroy> stream_;
  int device_;
};

/// An event of one GPU. By default one that takes times (for cudaEventElapsedTime, milliseconds).
class Event {
 public:
  /// Creates an event on `device`, with the flags of cudaEventCreateWithFlags. Throws CudaError.
  explicit Event(int device, unsigned flags = cudaEventDefault) : device_(device) {
    const DeviceGuard guard(device);
    CUDA_CHECK(cudaEventCreateWithFlags(&event_.handle, flags));
  }

  cudaEvent_t get() const { return event_.handle; }  ///< the handle
  operator cudaEvent_t() const { return get(); }     ///< for CUDA calls
  int device() const { return device_; }             ///< the GPU that it belongs to

 private:
  detail::Owner<cudaEvent_t, cudaEventDestroy> event_;
  int device_;
};

/// `elements` values of T in the memory of one GPU, not initialised. 0 elements: data() is null, no CUDA
/// call. Throws std::length_error if the byte count overflows, CudaError if the GPU has no such memory.
template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer(int device, std::size_t elements) : memory_(device, elements, sizeof(T)) {}

  T* data() const { return static_cast<T*>(memory_.data()); }  ///< the first element; null if there is none
  std::size_t size() const { return memory_.size(); }          ///< the number of elements
  std::size_t bytes() const { return size() * sizeof(T); }     ///< the size of all elements
  int device() const { return memory_.device(); }              ///< the GPU that it belongs to

 private:
  detail::DeviceMemory memory_;
};

/// `elements` values of T in page-locked host memory, not initialised. Copies between it and a GPU are truly
/// asynchronous; a copy from ordinary memory goes through a staging buffer. 0 elements: data() is null, no
/// CUDA call. Throws std::length_error if the byte count overflows, std::bad_alloc if the host has no such
/// memory.
template <typename T>
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t elements) : memory_(elements, sizeof(T)) {}

  /// The elements: where they are, how many, how to walk over them. The index is not checked.
  ///@{
  T* data() { return static_cast<T*>(memory_.data()); }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  std::size_t size() const { return memory_.size(); }
  std::size_t bytes() const { return size() * sizeof(T); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  ///@}

 private:
  detail::PinnedMemory memory_;
};

}  // namespace overlap
