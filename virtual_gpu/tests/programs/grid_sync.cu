// A cooperative launch: a barrier of the grid between two steps.
#include <cooperative_groups.h>
#include <stdio.h>

namespace cg = cooperative_groups;

__global__ void smooth(float* a, float* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < steps; ++step) {
    for (int i = grid.thread_rank(); i < n; i += grid.size())
      b[i] = 0.25f * a[(i + n - 1) % n] + 0.5f * a[i] + 0.25f * a[(i + 1) % n];
    grid.sync();
    float* old = a;
    a = b;
    b = old;
  }
}

int main() {
  int device = 0, supported = 0, n = 2000, steps = 6, threads = 128, per_sm = 0;
  cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device);
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, smooth, threads, 0);
  float *a, *b;
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  float *expected = new float[n], *next = new float[n];
  for (int i = 0; i < n; ++i) expected[i] = a[i] = i % 16 == 0 ? 4096.0f : 0.0f;
  void* args[] = {&a, &b, &n, &steps};
  dim3 grid(8), block(threads);
  cudaError_t error = cudaLaunchCooperativeKernel((void*)smooth, grid, block, args, 0, NULL);
  cudaDeviceSynchronize();
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < n; ++i)
      next[i] = 0.25f * expected[(i + n - 1) % n] + 0.5f * expected[i] + 0.25f * expected[(i + 1) % n];
    float* old = expected;
    expected = next;
    next = old;
  }
  bool ok = supported && error == cudaSuccess;
  for (int i = 0; i < n; ++i) ok = ok && a[i] == expected[i];
  dim3 too_many(per_sm * prop.multiProcessorCount + 1);
  error = cudaLaunchCooperativeKernel((void*)smooth, too_many, block, args);
  ok = ok && error == cudaErrorCooperativeLaunchTooLarge;
  printf(ok ? "PASS\n" : "FAIL\n");
  return !ok;
}
