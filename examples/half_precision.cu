// Half precision: y = a * x + y in pairs (half2), and a dot product of halves that is summed in float.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
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

__global__ void axpy(int pairs, half2 a, const half2* x, half2* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) y[i] = __hfma2(a, x[i], y[i]);
}

__global__ void dot(int n, const half* x, const half* y, float* result) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += __half2float(x[i]) * __half2float(y[i]);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 1 << 17, threads = 256;
  const float a = 0.5f;
  std::vector<half> x(n), y(n), result(n);
  double expected_dot = 0;
  for (int i = 0; i < n; ++i) {  // small integers: halves hold them, and all results, exactly
    x[i] = __float2half(static_cast<float>(i % 5 * 2));
    y[i] = __float2half(static_cast<float>(i % 3));
    expected_dot += (i % 5 * 2) * (a * (i % 5 * 2) + i % 3);
  }

  half *device_x = nullptr, *device_y = nullptr;
  float* device_dot = nullptr;
  CHECK(cudaMalloc(&device_x, n * sizeof(half)));
  CHECK(cudaMalloc(&device_y, n * sizeof(half)));
  CHECK(cudaMalloc(&device_dot, sizeof(float)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(half), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y.data(), n * sizeof(half), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(device_dot, 0, sizeof(float)));
  axpy<<<(n / 2 + threads - 1) / threads, threads>>>(n / 2, __float2half2_rn(a),
                                                     reinterpret_cast<const half2*>(device_x),
                                                     reinterpret_cast<half2*>(device_y));
  CHECK(cudaGetLastError());
  dot<<<32, threads>>>(n, device_x, device_y, device_dot);
  CHECK(cudaGetLastError());
  float sum = 0;
  CHECK(cudaMemcpy(result.data(), device_y, n * sizeof(half), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&sum, device_dot, sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_y));
  CHECK(cudaFree(device_dot));

  int errors = 0;
  for (int i = 0; i < n; ++i) {
    errors += __half2float(result[i]) != a * __half2float(x[i]) + __half2float(y[i]);
  }
  const bool passed = errors == 0 && std::fabs(sum - expected_dot) <= 1e-5 * expected_dot;
  std::printf("axpy: %d errors; dot product %.0f, expected %.0f: %s\n", errors, static_cast<double>(sum),
              expected_dot, passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
