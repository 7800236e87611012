// A two-dimensional convolution on pitched memory, with a halo, borders clamped.
#include <stdio.h>
#include <stdlib.h>

#define MASK 5
#define TILE 12

__constant__ float M[MASK][MASK];

__global__ void convolution(unsigned char* out, const unsigned char* in, size_t pitch, int width,
                            int height) {
  __shared__ float N_ds[TILE + MASK - 1][TILE + MASK - 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row_o = blockIdx.y * TILE + ty, col_o = blockIdx.x * TILE + tx;
  int row_i = min(max(row_o - MASK / 2, 0), height - 1), col_i = min(max(col_o - MASK / 2, 0), width - 1);
  N_ds[ty][tx] = in[row_i * pitch + col_i];
  __syncthreads();
  if (ty < TILE && tx < TILE && row_o < height && col_o < width) {
    float sum = 0.0f;
    for (int i = 0; i < MASK; ++i)
      for (int j = 0; j < MASK; ++j) sum += M[i][j] * N_ds[i + ty][j + tx];
    out[row_o * pitch + col_o] = (unsigned char)min(max((int)sum, 0), 255);
  }
}

int main() {
  const int width = 77, height = 50;
  unsigned char in[height][width], out[height][width];
  float mask[MASK][MASK];
  for (int i = 0; i < MASK * MASK; ++i) mask[i / MASK][i % MASK] = (i % 3) / 16.0f;
  for (int i = 0; i < width * height; ++i) in[i / width][i % width] = (unsigned char)(rand() % 256);
  unsigned char *d_in, *d_out;
  size_t pitch, pitch_out;
  cudaMallocPitch(&d_in, &pitch, width, height);
  cudaMallocPitch((void**)&d_out, &pitch_out, width, height);
  cudaMemset2D(d_out, pitch_out, 0, width, height);
  cudaMemcpy2D(d_in, pitch, in, width, width, height, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(M, mask, sizeof(mask));
  dim3 block(TILE + MASK - 1, TILE + MASK - 1), grid((width - 1) / TILE + 1, (height - 1) / TILE + 1);
  convolution<<<grid, block>>>(d_out, d_in, pitch, width, height);
  cudaMemcpy2D(out, width, d_out, pitch_out, width, height, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float sum = 0.0f;
      for (int i = 0; i < MASK; ++i)
        for (int j = 0; j < MASK; ++j)
          sum += mask[i][j] *
                 in[min(max(y + i - MASK / 2, 0), height - 1)][min(max(x + j - MASK / 2, 0), width - 1)];
      wrong += out[y][x] != (unsigned char)min(max((int)sum, 0), 255);
    }
  }
  printf("%s\n", wrong ? "FAIL" : "PASS");
  return wrong != 0;
}
