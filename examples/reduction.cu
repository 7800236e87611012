// Sum of an array in two launches: threads add with a stride, warps with shuffles, blocks through shared
// memory.
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

__device__ float warp_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffff, value, offset);
  }
  return value;
}

__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float warps[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];

  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  sum = warp_sum(sum);
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < static_cast<int>(blockDim.x) / warpSize ? warps[lane] : 0;
    sum = warp_sum(sum);
    if (lane == 0) out[blockIdx.x] = sum;
  }
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 1 << 19, threads = 256, blocks = 64;
  std::vector<float> data(n);
  double expected = 0;
  for (int i = 0; i < n; ++i) {
    data[i] = static_cast<float>(i % 7);  // all sums are exact
    expected += data[i];
  }

  float *in = nullptr, *partial = nullptr, *total = nullptr;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc(&partial, blocks * sizeof(float)));
  CHECK(cudaMalloc(&total, sizeof(float)));
  CHECK(cudaMemcpy(in, data.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  reduce<<<blocks, threads>>>(in, partial, n);
  CHECK(cudaGetLastError());
  reduce<<<1, threads>>>(partial, total, blocks);
  CHECK(cudaGetLastError());
  float result = 0;
  CHECK(cudaMemcpy(&result, total, sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(partial));
  CHECK(cudaFree(total));

  const bool passed = static_cast<double>(result) == expected;
  std::printf("sum %.0f, expected %.0f: %s\n", static_cast<double>(result), expected,
              passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
