// Matrix transpose through a tile of shared memory, so that reads and writes both go along rows. The tile has
// a spare column: without it, the reads of a column would all hit the same bank.
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

const int kTile = 32, kRowsOfThreads = 8;

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[kTile][kTile + 1];
  int column = blockIdx.x * kTile + threadIdx.x;
  for (int j = threadIdx.y; j < kTile; j += kRowsOfThreads) {
    const int row = blockIdx.y * kTile + j;
    if (row < rows && column < columns) tile[j][threadIdx.x] = in[row * columns + column];
  }
  __syncthreads();
  column = blockIdx.y * kTile + threadIdx.x;  // of the result
  for (int j = threadIdx.y; j < kTile; j += kRowsOfThreads) {
    const int row = blockIdx.x * kTile + j;
    if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][j];
  }
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int rows = 387, columns = 530;
  const size_t bytes = sizeof(float) * rows * columns;
  std::vector<float> data(rows * columns), result(rows * columns);
  for (int i = 0; i < rows * columns; ++i) data[i] = static_cast<float>(i);

  float *in = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&in, bytes));
  CHECK(cudaMalloc(&out, bytes));
  CHECK(cudaMemcpy(in, data.data(), bytes, cudaMemcpyHostToDevice));
  const dim3 block(kTile, kRowsOfThreads);
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose<<<grid, block>>>(in, out, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), out, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));

  int errors = 0;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      errors += result[column * rows + row] != data[row * columns + column];
    }
  }
  std::printf("transpose of %d x %d: %d errors: %s\n", rows, columns, errors, errors == 0 ? "PASS" : "FAIL");
  return errors == 0 ? 0 : 1;
}
