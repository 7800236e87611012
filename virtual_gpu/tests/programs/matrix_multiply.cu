// Matrix multiplication as in the programming guide: structures by value, sub-matrices in shared memory.
#include <cstdio>
#include <cstdlib>

typedef struct {
  int width, height, stride;
  float* elements;
} Matrix;

#define BLOCK_SIZE 16

__device__ float GetElement(const Matrix A, int row, int col) { return A.elements[row * A.stride + col]; }
__device__ void SetElement(Matrix A, int row, int col, float value) {
  A.elements[row * A.stride + col] = value;
}
__device__ Matrix GetSubMatrix(Matrix A, int row, int col) {
  Matrix Asub;
  Asub.width = BLOCK_SIZE;
  Asub.height = BLOCK_SIZE;
  Asub.stride = A.stride;
  Asub.elements = &A.elements[A.stride * BLOCK_SIZE * row + BLOCK_SIZE * col];
  return Asub;
}

__global__ void MatMulKernel(Matrix A, Matrix B, Matrix C) {
  int blockRow = blockIdx.y, blockCol = blockIdx.x;
  Matrix Csub = GetSubMatrix(C, blockRow, blockCol);
  float Cvalue = 0;
  int row = threadIdx.y, col = threadIdx.x;
  for (int m = 0; m < (A.width / BLOCK_SIZE); ++m) {
    Matrix Asub = GetSubMatrix(A, blockRow, m);
    Matrix Bsub = GetSubMatrix(B, m, blockCol);
    __shared__ float As[BLOCK_SIZE][BLOCK_SIZE];
    __shared__ float Bs[BLOCK_SIZE][BLOCK_SIZE];
    As[row][col] = GetElement(Asub, row, col);
    Bs[row][col] = GetElement(Bsub, row, col);
    __syncthreads();
    for (int e = 0; e < BLOCK_SIZE; ++e) Cvalue += As[row][e] * Bs[e][col];
    __syncthreads();
  }
  SetElement(Csub, row, col, Cvalue);
}

Matrix to_device(const Matrix A) {
  Matrix d_A = A;
  size_t size = A.width * A.height * sizeof(float);
  cudaMalloc(&d_A.elements, size);
  cudaMemcpy(d_A.elements, A.elements, size, cudaMemcpyHostToDevice);
  return d_A;
}

int main() {
  const int m = 48, k = 80, n = 32;
  Matrix A = {k, m, k, (float*)malloc(m * k * sizeof(float))},
         B = {n, k, n, (float*)malloc(k * n * sizeof(float))};
  Matrix C = {n, m, n, (float*)calloc(m * n, sizeof(float))};
  for (int i = 0; i < m * k; ++i) A.elements[i] = rand() % 5;
  for (int i = 0; i < k * n; ++i) B.elements[i] = rand() % 5;
  Matrix d_A = to_device(A), d_B = to_device(B), d_C = to_device(C);
  dim3 dimBlock(BLOCK_SIZE, BLOCK_SIZE);
  dim3 dimGrid(B.width / dimBlock.x, A.height / dimBlock.y);
  MatMulKernel<<<dimGrid, dimBlock>>>(d_A, d_B, d_C);
  cudaMemcpy(C.elements, d_C.elements, m * n * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int e = 0; e < k; ++e) sum += A.elements[i * k + e] * B.elements[e * n + j];
      wrong += sum != C.elements[i * n + j];
    }
  }
  cudaFree(d_A.elements), cudaFree(d_B.elements), cudaFree(d_C.elements);
  printf("%s\n", wrong == 0 ? "PASS" : "FAIL");
  return wrong != 0;
}
