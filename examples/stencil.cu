// One-dimensional stencil: each result is the sum of the 2 * kRadius + 1 inputs around it. A block loads its
// part and the borders of its neighbours' into shared memory once.
#include <cuda_runtime.h>

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

const int kRadius = 4, kThreads = 256;

__global__ void stencil(const int* in, int* out, int n) {
  __shared__ int part[kThreads + 2 * kRadius];
  const int first = static_cast<int>(blockIdx.x * blockDim.x) - kRadius;
  for (int i = threadIdx.x; i < kThreads + 2 * kRadius; i += blockDim.x) {
    const int from = first + i;
    part[i] = from >= 0 && from < n ? in[from] : 0;
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int offset = 0; offset <= 2 * kRadius; ++offset) sum += part[threadIdx.x + offset];
  out[i] = sum;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 100000, rounds = 3;
  std::vector<int> data(n), expected, result(n);
  for (int i = 0; i < n; ++i) data[i] = i * 31 % 17;

  int* memory[2] = {};
  for (int*& half : memory) CHECK(cudaMalloc(&half, n * sizeof(int)));
  CHECK(cudaMemcpy(memory[0], data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int round = 0; round < rounds; ++round) {
    stencil<<<(n + kThreads - 1) / kThreads, kThreads>>>(memory[round % 2], memory[1 - round % 2], n);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemcpy(result.data(), memory[rounds % 2], n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int* half : memory) CHECK(cudaFree(half));

  for (int round = 0; round < rounds; ++round) {
    expected.assign(n, 0);
    for (int i = 0; i < n; ++i) {
      for (int j = i - kRadius; j <= i + kRadius; ++j) expected[i] += j >= 0 && j < n ? data[j] : 0;
    }
    data = expected;
  }
  const bool passed = result == expected;
  std::printf("%d rounds of a stencil on %d numbers: %s\n", rounds, n, passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
