// Histogram of bytes: each block counts with atomics in shared memory, then adds its counts to the result.
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

const int kBins = 256;

__global__ void histogram(const unsigned char* data, int n, unsigned int* bins) {
  __shared__ unsigned int mine[kBins];
  for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) mine[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[data[i]], 1u);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
    if (mine[bin] != 0) atomicAdd(&bins[bin], mine[bin]);
  }
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 300000;
  std::vector<unsigned char> data(n);
  std::vector<unsigned int> expected(kBins, 0), result(kBins, 0);
  unsigned int state = 12345;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = static_cast<unsigned char>((state >> 24) * (state >> 24) / 256);  // small values are frequent
    ++expected[data[i]];
  }

  unsigned char* in = nullptr;
  unsigned int* bins = nullptr;
  CHECK(cudaMalloc(&in, n));
  CHECK(cudaMalloc(&bins, kBins * sizeof(unsigned int)));
  CHECK(cudaMemcpy(in, data.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(bins, 0, kBins * sizeof(unsigned int)));
  histogram<<<32, 256>>>(in, n, bins);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), bins, kBins * sizeof(unsigned int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(bins));

  const bool passed = result == expected;
  std::printf("histogram of %d bytes: %s\n", n, passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
