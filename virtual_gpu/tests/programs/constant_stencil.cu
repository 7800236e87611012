// A stencil with its coefficients in constant memory.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define RADIUS 4
#define BLOCK 128

__constant__ float coefficients[RADIUS + 1];

__global__ void __launch_bounds__(BLOCK)
    stencil(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[BLOCK + 2 * RADIUS];
  const int global = blockIdx.x * blockDim.x + threadIdx.x, local = threadIdx.x + RADIUS;
  tile[local] = global < n ? in[global] : 0.0f;
  if (threadIdx.x < RADIUS) {
    tile[local - RADIUS] = global >= RADIUS ? in[global - RADIUS] : 0.0f;
    tile[local + BLOCK] = global + BLOCK < n ? in[global + BLOCK] : 0.0f;
  }
  __syncthreads();
  if (global >= n) return;
  float value = coefficients[0] * tile[local];
#pragma unroll
  for (int i = 1; i <= RADIUS; ++i) value += coefficients[i] * (tile[local - i] + tile[local + i]);
  out[global] = value;
}

int main(void) {
  const int n = 10000;
  const float h_coefficients[RADIUS + 1] = {16.0f, 8.0f, 4.0f, 2.0f, 1.0f};
  float *h_in = (float*)malloc(n * sizeof(float)), *h_out = (float*)malloc(n * sizeof(float));
  for (int i = 0; i < n; ++i) h_in[i] = (float)(i % 17);
  float *d_in, *d_out;
  cudaMalloc((void**)&d_in, n * sizeof(float));
  cudaMalloc((void**)&d_out, n * sizeof(float));
  cudaMemcpyToSymbol(coefficients, h_coefficients, sizeof(h_coefficients));
  cudaMemcpy(d_in, h_in, n * sizeof(float), cudaMemcpyHostToDevice);
  stencil<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(d_in, d_out, n);
  cudaMemcpy(h_out, d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  int errors = 0;
  for (int i = 0; i < n; ++i) {
    float expected = h_coefficients[0] * h_in[i];
    for (int r = 1; r <= RADIUS; ++r)
      expected += h_coefficients[r] * ((i >= r ? h_in[i - r] : 0) + (i + r < n ? h_in[i + r] : 0));
    errors += h_out[i] != expected;
  }
  cudaFree(d_in);
  cudaFree(d_out);
  free(h_in);
  free(h_out);
  printf("%s\n", errors ? "FAIL" : "PASS");
  return errors != 0;
}
