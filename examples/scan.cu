// Exclusive prefix sum of an array: each block scans its part in shared memory, one block scans the parts'
// sums, and a last kernel adds them.
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

const int kThreads = 512;

// Writes the exclusive sums of the block's part, and the sum of the whole part to sums[block].
__global__ void scan_parts(const int* in, int* out, int* sums, int n) {
  __shared__ int buffer[2][kThreads];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int mine = i < n ? in[i] : 0;
  int from = 0;
  buffer[from][threadIdx.x] = mine;
  __syncthreads();
  for (unsigned int step = 1; step < blockDim.x; step *= 2) {
    const int to = 1 - from;
    int value = buffer[from][threadIdx.x];
    if (threadIdx.x >= step) value += buffer[from][threadIdx.x - step];
    buffer[to][threadIdx.x] = value;
    __syncthreads();
    from = to;
  }
  if (i < n) out[i] = buffer[from][threadIdx.x] - mine;
  if (sums != nullptr && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = buffer[from][threadIdx.x];
}

__global__ void add_sums(int* out, const int* sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += sums[blockIdx.x];
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 100003, blocks = (n + kThreads - 1) / kThreads;  // at most kThreads blocks
  std::vector<int> data(n), expected(n), result(n);
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    data[i] = i * 7 % 13;
    expected[i] = sum;
    sum += data[i];
  }

  int *in = nullptr, *out = nullptr, *sums = nullptr;
  CHECK(cudaMalloc(&in, n * sizeof(int)));
  CHECK(cudaMalloc(&out, n * sizeof(int)));
  CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
  CHECK(cudaMemcpy(in, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scan_parts<<<blocks, kThreads>>>(in, out, sums, n);
  scan_parts<<<1, kThreads>>>(sums, sums, nullptr, blocks);
  add_sums<<<blocks, kThreads>>>(out, sums, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaFree(sums));

  const bool passed = result == expected;
  std::printf("scan of %d numbers: %s\n", n, passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
