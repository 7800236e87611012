// The first program of every course: C style, no CUDA header, a macro that checks errors.
#include <stdio.h>
#include <stdlib.h>

#define CUDA_CHECK(call)                                                                         \
  {                                                                                              \
    cudaError_t err = call;                                                                      \
    if (err != cudaSuccess) {                                                                    \
      fprintf(stderr, "CUDA error at %s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
      exit(EXIT_FAILURE);                                                                        \
    }                                                                                            \
  }

__global__ void vecAdd(float* a, float* b, float* c, int n) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < n) c[id] = a[id] + b[id];
}

int main(int argc, char* argv[]) {
  int n = argc > 1 ? atoi(argv[1]) : 50000;
  size_t bytes = n * sizeof(float);
  float *h_a = (float*)malloc(bytes), *h_b = (float*)malloc(bytes), *h_c = (float*)malloc(bytes);
  for (int i = 0; i < n; i++) {
    h_a[i] = sinf(i) * sinf(i);
    h_b[i] = cosf(i) * cosf(i);
  }
  float *d_a, *d_b, *d_c;
  CUDA_CHECK(cudaMalloc(&d_a, bytes));
  CUDA_CHECK(cudaMalloc(&d_b, bytes));
  CUDA_CHECK(cudaMalloc(&d_c, bytes));
  CUDA_CHECK(cudaMemcpy(d_a, h_a, bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_b, h_b, bytes, cudaMemcpyHostToDevice));
  int blockSize = 256, gridSize = (int)ceil((float)n / blockSize);
  vecAdd<<<gridSize, blockSize>>>(d_a, d_b, d_c, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(h_c, d_c, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) {
    if (fabs(h_a[i] + h_b[i] - h_c[i]) > 1e-5) {
      printf("FAIL at %d\n", i);
      return 1;
    }
  }
  cudaFree(d_a);
  cudaFree(d_b);
  cudaFree(d_c);
  free(h_a);
  free(h_b);
  free(h_c);
  cudaDeviceReset();
  printf("PASS\n");
  return 0;
}
