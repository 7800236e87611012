// Histograms of text: atomics in global and in shared memory.
#include <stdio.h>
#include <string.h>

#define BINS 26

__global__ void global_histogram(const char* text, unsigned int length, unsigned int* bins) {
  unsigned int i = threadIdx.x + blockIdx.x * blockDim.x, stride = blockDim.x * gridDim.x;
  while (i < length) {
    int letter = text[i] - 'a';
    if (letter >= 0 && letter < BINS) atomicAdd(&(bins[letter]), 1);
    i += stride;
  }
}

__global__ void private_histogram(const char* text, unsigned int length, unsigned int* bins) {
  __shared__ unsigned int mine[BINS];
  if (threadIdx.x < BINS) mine[threadIdx.x] = 0u;
  __syncthreads();
  for (unsigned int i = threadIdx.x + blockIdx.x * blockDim.x; i < length; i += blockDim.x * gridDim.x) {
    int letter = text[i] - 'a';
    if (letter >= 0 && letter < BINS) atomicAdd_block(&mine[letter], 1u);
  }
  __syncthreads();
  if (threadIdx.x < BINS) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

int main() {
  char text[5000];
  unsigned int expected[BINS] = {0}, bins[BINS];
  for (int i = 0; i < 5000; ++i) {
    text[i] = 'a' + (i * i) % 30;
    if (text[i] <= 'z') expected[text[i] - 'a']++;
  }
  char* d_text;
  unsigned int* d_bins;
  cudaMalloc((void**)&d_text, sizeof(text));
  cudaMalloc((void**)&d_bins, sizeof(bins));
  cudaMemcpy(d_text, text, sizeof(text), cudaMemcpyHostToDevice);
  int ok = 1;
  for (int version = 0; version < 2; ++version) {
    cudaMemset(d_bins, 0, sizeof(bins));
    if (version == 0)
      global_histogram<<<8, 64>>>(d_text, sizeof(text), d_bins);
    else
      private_histogram<<<8, 64>>>(d_text, sizeof(text), d_bins);
    cudaMemcpy(bins, d_bins, sizeof(bins), cudaMemcpyDeviceToHost);
    ok = ok && memcmp(bins, expected, sizeof(bins)) == 0;
  }
  printf(ok ? "PASS\n" : "FAIL\n");
  return !ok;
}
