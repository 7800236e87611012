// After a warp function, lanes print in lane order.
#include <cstdio>

__global__ void hello() {
  int sum = threadIdx.x;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  printf("%d ", threadIdx.x);
  __syncwarp();
  if (threadIdx.x < 3) printf("(%d: %d) ", threadIdx.x, sum);
}

int main() {
  hello<<<1, 32>>>();
  const cudaError_t error = cudaDeviceSynchronize();
  printf("\n%s\n", error == cudaSuccess ? "PASS" : cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
