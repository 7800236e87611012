// A dot product whose blocks add under a lock by atomicCAS, and other atomics.
#include <stdio.h>
#include <stdlib.h>

struct Lock {
  int* mutex;
  Lock(void) {
    int state = 0;
    cudaMalloc((void**)&mutex, sizeof(int));
    cudaMemcpy(mutex, &state, sizeof(int), cudaMemcpyHostToDevice);
  }
  ~Lock(void) {}
  __device__ void lock(void) {
    while (atomicCAS(mutex, 0, 1) != 0)
      ;
    __threadfence();
  }
  __device__ void unlock(void) {
    __threadfence();
    atomicExch(mutex, 0);
  }
};

#define imin(a, b) (a < b ? a : b)
const int N = 4 * 1024;
const int threadsPerBlock = 128;
const int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock);

__global__ void dot(Lock lock, float* a, float* b, float* c) {
  __shared__ float cache[threadsPerBlock];
  int tid = threadIdx.x + blockIdx.x * blockDim.x;
  int cacheIndex = threadIdx.x;
  float temp = 0;
  while (tid < N) {
    temp += a[tid] * b[tid];
    tid += blockDim.x * gridDim.x;
  }
  cache[cacheIndex] = temp;
  __syncthreads();
  int i = blockDim.x / 2;
  while (i != 0) {
    if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
    __syncthreads();
    i /= 2;
  }
  if (cacheIndex == 0) {
    lock.lock();
    volatile float* sum = c;
    *sum = *sum + cache[0];
    lock.unlock();
  }
}

__global__ void several(int* v) {
  atomicMin(&v[0], -(int)threadIdx.x);
  atomicMax(&v[1], (int)threadIdx.x);
  atomicOr((unsigned int*)&v[2], 1u << threadIdx.x);
  atomicSub(&v[3], 2);
  atomicInc((unsigned int*)&v[4], 6);
  atomicXor(&v[5], 1 << threadIdx.x);
}

int main(void) {
  float *a = (float*)malloc(N * sizeof(float)), *b = (float*)malloc(N * sizeof(float)), c = 0, *dev_a, *dev_b,
        *dev_c;
  cudaMalloc((void**)&dev_a, N * sizeof(float));
  cudaMalloc((void**)&dev_b, N * sizeof(float));
  cudaMalloc((void**)&dev_c, sizeof(float));
  double expected = 0;
  for (int i = 0; i < N; i++) a[i] = i % 10, b[i] = i % 7, expected += a[i] * b[i];
  cudaMemcpy(dev_a, a, N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dev_b, b, N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dev_c, &c, sizeof(float), cudaMemcpyHostToDevice);
  Lock lock;
  dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c);
  cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost);
  int h[6], *v;
  cudaMalloc(&v, sizeof(h));
  cudaMemset(v, 0, sizeof(h));
  several<<<1, 32>>>(v);
  cudaMemcpy(h, v, sizeof(h), cudaMemcpyDeviceToHost);
  int ok =
      c == expected && h[0] == -31 && h[1] == 31 && h[2] == -1 && h[3] == -64 && h[4] == 32 % 7 && h[5] == -1;
  printf("%s\n", ok ? "PASS" : "FAIL");
  return !ok;
}
