// Pi from random points of the program's own generator; double atomics; printf and malloc on the device.
#include <cstdio>
#include <cstdlib>

__device__ double hits;

__device__ unsigned int next_random(unsigned long long* state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned int)(*state >> 33);
}

__global__ void throw_darts(int darts, unsigned long long seed) {
  unsigned long long* state = (unsigned long long*)malloc(sizeof(unsigned long long));
  *state = seed ^ (1234567ULL * (blockIdx.x * blockDim.x + threadIdx.x + 1));
  int inside = 0;
  for (int i = 0; i < darts; ++i) {
    const float x = next_random(state) / 2147483648.0f, y = next_random(state) / 2147483648.0f;
    inside += x * x + y * y <= 1.0f;
  }
  free(state);
  atomicAdd(&hits, (double)inside);
  if (blockIdx.x == 0 && threadIdx.x == 0) printf("first thread: %d of %d\n", inside, darts);
}

int main(int argc, char** argv) {
  const int darts = 200, blocks = 8, threads = 64;
  double zero = 0, total = 0;
  cudaMemcpyToSymbol(hits, &zero, sizeof(zero));
  throw_darts<<<blocks, threads>>>(darts, 42);
  cudaMemcpyFromSymbol(&total, hits, sizeof(total));
  const double pi = 4 * total / (1.0 * darts * blocks * threads);
  printf("pi is about %.4f\n%s\n", pi, abs(pi - 3.14159) < 0.05 ? "PASS" : "FAIL");
  return abs(pi - 3.14159) < 0.05 ? EXIT_SUCCESS : EXIT_FAILURE;
}
