// Dynamic shared memory: each block sorts its part in shared memory whose size the host chooses, at last more
// than the 48 KiB that a kernel gets without asking.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    const cudaError_t error = (call);                                                                \
    if (error != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(1);                                                                                  \
    }                                                                                                \
  } while (0)

// Bitonic sort of `size` keys per block; a power of two, and at least two per thread.
__global__ void sort_parts(unsigned int* keys, int size) {
  extern __shared__ unsigned int part[];
  unsigned int* mine = keys + static_cast<size_t>(blockIdx.x) * size;
  for (int i = threadIdx.x; i < size; i += blockDim.x) part[i] = mine[i];
  for (int length = 2; length <= size; length *= 2) {
    for (int distance = length / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
        const int low = pair / distance * 2 * distance + pair % distance, high = low + distance;
        const bool ascending = (low & length) == 0;
        if ((part[low] > part[high]) == ascending) {
          const unsigned int key = part[low];
          part[low] = part[high];
          part[high] = key;
        }
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x) mine[i] = part[i];
}

int main() {
  int devices = 0, limit = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(cudaFuncSetAttribute(sort_parts, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));

  bool passed = true;
  for (const int size : {256, 2048, 16384}) {
    const int shared = size * static_cast<int>(sizeof(unsigned int)), blocks = 16384 / size;
    if (shared > limit) {
      std::printf("  %d bytes of shared memory are more than the device has: left out\n", shared);
      continue;
    }
    std::vector<unsigned int> keys(16384);
    unsigned int state = size;
    for (unsigned int& key : keys) key = state = state * 1664525u + 1013904223u;
    std::vector<unsigned int> expected = keys;
    for (int block = 0; block < blocks; ++block) {
      std::sort(expected.begin() + block * size, expected.begin() + (block + 1) * size);
    }

    unsigned int* memory = nullptr;
    const size_t bytes = keys.size() * sizeof(unsigned int);
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemcpy(memory, keys.data(), bytes, cudaMemcpyHostToDevice));
    sort_parts<<<blocks, 128, shared>>>(memory, size);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(keys.data(), memory, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(memory));
    const bool sorted = keys == expected;
    std::printf("  parts of %d keys, %d bytes of shared memory: %s\n", size, shared,
                sorted ? "sorted" : "wrong");
    passed &= sorted;
  }
  std::printf("%s\n", passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
