// A bitonic sort in global memory; kernels that take device functors and lambdas.
#include <algorithm>
#include <cstdio>
#include <vector>

__global__ void bitonic_sort_step(unsigned int* values, int j, int k) {
  unsigned int i = threadIdx.x + blockDim.x * blockIdx.x, ixj = i ^ j;
  if (ixj <= i) return;
  const bool ascending = (i & k) == 0;
  if ((values[i] > values[ixj]) == ascending) {
    unsigned int temp = values[i];
    values[i] = values[ixj];
    values[ixj] = temp;
  }
}

template <typename T>
struct Square {
  __host__ __device__ T operator()(const T& x) const { return x * x; }
};

template <typename T, typename Functor>
__global__ void map_kernel(T* data, int n, Functor f) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    data[i] = f(data[i]);
}

typedef unsigned int (*operation_t)(unsigned int);
__device__ unsigned int halve(unsigned int x) { return x / 2; }
__device__ operation_t d_halve = halve;
__global__ void apply(unsigned int* data, operation_t* operation, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = (*operation)(data[i]);
}

int main() {
  const int n = 1024, threads = 128;
  std::vector<unsigned int> h(n), expected;
  unsigned int seed = 12345;
  for (auto& x : h) x = (seed = seed * 1664525u + 1013904223u) >> 16;
  expected = h;
  std::sort(expected.begin(), expected.end());
  unsigned int* d;
  cudaMalloc(&d, n * sizeof(unsigned int));
  cudaMemcpy(d, h.data(), n * sizeof(unsigned int), cudaMemcpyHostToDevice);
  for (int k = 2; k <= n; k <<= 1) {
    for (int j = k >> 1; j > 0; j = j >> 1) bitonic_sort_step<<<n / threads, threads>>>(d, j, k);
  }
  cudaMemcpy(h.data(), d, n * sizeof(unsigned int), cudaMemcpyDeviceToHost);
  bool ok = h == expected;
  unsigned int offset = 3;
  map_kernel<<<4, threads>>>(d, n, Square<unsigned int>());
  map_kernel<<<4, threads>>>(d, n, [=] __device__(unsigned int x) { return x + offset; });
  operation_t* operation;
  cudaGetSymbolAddress((void**)&operation, d_halve);
  apply<<<n / threads, threads>>>(d, operation, n);
  cudaMemcpy(h.data(), d, n * sizeof(unsigned int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) ok = ok && h[i] == (expected[i] * expected[i] + offset) / 2;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
