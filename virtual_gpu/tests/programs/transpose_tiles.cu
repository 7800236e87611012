// Transposes: naive, in shared memory, without bank conflicts; timed with events.
#include <cuda_runtime.h>
#include <device_launch_parameters.h>

#include <iostream>
#include <vector>

constexpr int TILE_DIM = 32;
constexpr int BLOCK_ROWS = 8;

__global__ void naive(float* odata, const float* idata, int width) {
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[x * width + (y + j)] = idata[(y + j) * width + x];
}

template <int padding>
__global__ void tiled(float* odata, const float* idata, int width) {
  __shared__ float tile[TILE_DIM][TILE_DIM + padding];
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    odata[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
  const int n = 128;
  std::vector<float> in(n * n), out(n * n);
  for (int i = 0; i < n * n; ++i) in[i] = i;
  float *d_in, *d_out;
  cudaMalloc(&d_in, in.size() * sizeof(float));
  cudaMalloc(&d_out, in.size() * sizeof(float));
  cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  dim3 grid(n / TILE_DIM, n / TILE_DIM, 1), block(TILE_DIM, BLOCK_ROWS, 1);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  bool ok = true;
  for (auto kernel : {naive, tiled<0>, tiled<1>}) {
    cudaMemset(d_out, 0, in.size() * sizeof(float));
    cudaEventRecord(start);
    kernel<<<grid, block>>>(d_out, d_in, n);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    ok = ok && ms > 0;
    cudaMemcpy(out.data(), d_out, in.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) ok = ok && out[j * n + i] == in[i * n + j];
    }
  }
  std::cout << (ok ? "PASS" : "FAIL") << std::endl;
  return !ok;
}
