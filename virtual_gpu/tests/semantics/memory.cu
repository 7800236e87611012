// Memory: allocation, page-locked memory, the owner of an address. API, "Memory Management" and "Unified
// Addressing".
#include <cstdint>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using MemoryTest = GpuTest;
using MemoryOfTwoGpusTest = TwoGpusTest;

__global__ void add_one(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}

TEST_F(MemoryTest, FreeingNothingIsNoError) {
  CUDA_OK(cudaFree(nullptr));
  CUDA_OK(cudaFreeHost(nullptr));
}

TEST_F(MemoryTest, NoBytesGiveAPointerThatCanBeFreed) {
  int* pointer = nullptr;
  CUDA_OK(cudaMalloc(&pointer, 0));
  CUDA_OK(cudaFree(pointer));
}

// Guide, "Device Memory Accesses": aligned to at least 256 bytes.
TEST_F(MemoryTest, AllocationsAreAligned) {
  for (const std::size_t bytes : {1, 3, 100, 1000, 100000}) {
    const DeviceArray<char> memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u) << bytes << " bytes";
  }
}

TEST_F(MemoryTest, AllocationsDoNotOverlap) {
  const DeviceArray<char> first(1000, 1), second(1000, 2), third(1, 3);
  CUDA_OK(cudaMemset(second.data(), 9, 1000));
  EXPECT_EQ(first.values(), std::vector<char>(1000, 1));
  EXPECT_EQ(third.value(), 3);
}

TEST_F(MemoryTest, TooMuchIsRefusedAndDoesNotStick) {
  void* pointer = nullptr;
  EXPECT_CUDA_ERROR(cudaMalloc(&pointer, std::size_t{1} << 50), cudaErrorMemoryAllocation);
  const DeviceArray<int> x(1, 3);
  EXPECT_EQ(x.value(), 3);
}

// API, cudaFree: "If cudaFree(devPtr) has already been called before, an error is returned."
TEST_F(MemoryTest, FreeingTwiceIsAnError) {
  int* pointer = nullptr;
  CUDA_OK(cudaMalloc(&pointer, 4));
  CUDA_OK(cudaFree(pointer));
  EXPECT_CUDA_ERROR(cudaFree(pointer), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, FreeAndTotalMemory) {
  std::size_t free = 0, total = 0;
  CUDA_OK(cudaMemGetInfo(&free, &total));
  EXPECT_GT(free, 0u);
  EXPECT_LE(free, total);
  cudaDeviceProp properties;
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT_EQ(total, properties.totalGlobalMem);
}

TEST_F(MemoryTest, KernelsAccessPinnedMemory) {
  PinnedArray<int> values(1000, 5);
  add_one<<<4, 256>>>(values.data(), 1000);
  CUDA_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[i], 6) << i;
}

TEST_F(MemoryTest, RegisteredMemoryIsPinned) {
  std::vector<int> values(100000, 5);
  const std::size_t bytes = values.size() * sizeof(int);
  CUDA_OK(cudaHostRegister(values.data(), bytes, cudaHostRegisterDefault));
  EXPECT_CUDA_ERROR(cudaHostRegister(values.data(), bytes, cudaHostRegisterDefault),
                    cudaErrorHostMemoryAlreadyRegistered);
  const DeviceArray<int> x(1, 0);
  const Stream stream;
  {
    Gate gate(stream);
    CUDA_OK(cudaMemcpyAsync(x.data(), values.data(), sizeof(int), cudaMemcpyHostToDevice, stream));
    values[0] = 7;
  }
  EXPECT_EQ(x.value(), 7) << "not staged: read when the copy runs";
  CUDA_OK(cudaHostUnregister(values.data()));
  EXPECT_CUDA_ERROR(cudaHostUnregister(values.data()), cudaErrorHostMemoryNotRegistered);
}

TEST_F(MemoryTest, AttributesOfPointers) {
  int pageable = 0;
  PinnedArray<int> pinned(2);
  const DeviceArray<int> device(2);
  cudaPointerAttributes attributes;
  CUDA_OK(cudaPointerGetAttributes(&attributes, device.data() + 1));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device.data() + 1);
  CUDA_OK(cudaPointerGetAttributes(&attributes, pinned.data() + 1));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned.data() + 1);
  EXPECT_EQ(attributes.devicePointer, pinned.data() + 1);
  CUDA_OK(cudaPointerGetAttributes(&attributes, &pageable));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(MemoryOfTwoGpusTest, MemoryBelongsToTheDeviceThatWasCurrent) {
  const auto there = made_on(1, [] { return DeviceArray<int>(1, 6); });
  cudaPointerAttributes attributes;
  CUDA_OK(cudaPointerGetAttributes(&attributes, there.data()));
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(there.value(), 6) << "copies find the device by the address";
}

}  // namespace
}  // namespace semantics
