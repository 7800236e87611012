// The reductions of courses, step by step: interleaved, sequential, unrolled with __syncwarp, shuffles.
#include <cstdio>
#include <cstdlib>

__global__ void interleaved(const int* in, int* out) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  sdata[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = sdata[0];
}

__global__ void sequential(const int* in, int* out) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  sdata[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = sdata[0];
}

template <unsigned int blockSize>
__device__ void warpReduce(volatile int* sdata, unsigned int tid) {
  int sum = sdata[tid];
  for (int s = blockSize >= 64 ? 32 : blockSize / 2; s > 0; s >>= 1) {
    if (s == 32 || tid < s) sum += sdata[tid + s];
    __syncwarp();
    sdata[tid] = sum;
    __syncwarp();
  }
}

template <unsigned int blockSize>
__global__ void unrolled(const int* in, int* out) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  sdata[tid] = in[blockIdx.x * blockSize + tid];
  __syncthreads();
  if (blockSize >= 256) {
    if (tid < 128) sdata[tid] += sdata[tid + 128];
    __syncthreads();
  }
  if (blockSize >= 128) {
    if (tid < 64) sdata[tid] += sdata[tid + 64];
    __syncthreads();
  }
  if (tid < 32) warpReduce<blockSize>(sdata, tid);
  if (tid == 0) out[blockIdx.x] = sdata[0];
}

__inline__ __device__ int warpReduceSum(int val) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}

__global__ void shuffled(const int* in, int* out) {
  static __shared__ int shared[32];
  int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  int val = warpReduceSum(in[blockIdx.x * blockDim.x + threadIdx.x]);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
  if (wid == 0) val = warpReduceSum(val);
  if (threadIdx.x == 0) out[blockIdx.x] = val;
}

int main(int argc, char** argv) {
  const int threads = 256, blocks = 16, n = threads * blocks;
  int *h_in = new int[n], h_out[blocks], expected = 0;
  srand(1);
  for (int i = 0; i < n; ++i) expected += h_in[i] = rand() & 0xff;
  int *d_in, *d_out;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, blocks * sizeof(int));
  cudaMemcpy(d_in, h_in, n * sizeof(int), cudaMemcpyHostToDevice);
  bool ok = true;
  for (int version = 0; version < 4; ++version) {
    switch (version) {
      case 0:
        interleaved<<<blocks, threads, threads * sizeof(int)>>>(d_in, d_out);
        break;
      case 1:
        sequential<<<blocks, threads, threads * sizeof(int)>>>(d_in, d_out);
        break;
      case 2:
        unrolled<256><<<blocks, threads, threads * sizeof(int)>>>(d_in, d_out);
        break;
      default:
        shuffled<<<blocks, threads>>>(d_in, d_out);
        break;
    }
    cudaMemcpy(h_out, d_out, sizeof(h_out), cudaMemcpyDeviceToHost);
    int sum = 0;
    for (int b = 0; b < blocks; ++b) sum += h_out[b];
    printf("version %d: %d, expected %d\n", version, sum, expected);
    ok = ok && sum == expected;
  }
  delete[] h_in;
  printf("%s\n", ok ? "PASS" : "FAIL");
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
