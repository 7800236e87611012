// Templates: one kernel for several types, operations and sizes of a block, chosen by the compiler.
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

struct Plus {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Largest {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

// Combines neighbours kThreads at a time: out[block] = in[first] op in[first + 1] op ...
template <int kThreads, class T, class Operation>
__global__ void fold(const T* in, T* out, Operation operation) {
  __shared__ T values[kThreads];
  values[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) {
      values[threadIdx.x] = operation(values[threadIdx.x], values[threadIdx.x + half]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = values[0];
}

template <int kThreads, class T, class Operation>
bool test(const char* name, Operation operation) {
  const int blocks = 200, n = blocks * kThreads;
  std::vector<T> data(n), result(blocks);
  for (int i = 0; i < n; ++i) data[i] = static_cast<T>(i * 37 % 101) - 50;

  T *in = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&in, n * sizeof(T)));
  CHECK(cudaMalloc(&out, blocks * sizeof(T)));
  CHECK(cudaMemcpy(in, data.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  fold<kThreads><<<blocks, kThreads>>>(in, out, operation);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), out, blocks * sizeof(T), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));

  int errors = 0;
  for (int block = 0; block < blocks; ++block) {
    T expected = data[block * kThreads];
    for (int i = 1; i < kThreads; ++i) expected = operation(expected, data[block * kThreads + i]);
    errors += result[block] != expected;
  }
  std::printf("  %s, blocks of %d: %d errors\n", name, kThreads, errors);
  return errors == 0;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  bool passed = test<64, int>("sum of int", Plus());
  passed &= test<128, long long>("sum of long long", Plus());
  passed &= test<256, double>("largest of double", Largest());
  passed &= test<512, float>("largest of float", Largest());
  std::printf("%s\n", passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
