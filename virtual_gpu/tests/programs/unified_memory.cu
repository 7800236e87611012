// Managed memory: the host fills and reads the kernels' data; prefetch and advice.
#include <algorithm>
#include <cmath>
#include <iostream>

__global__ void add(int n, float* x, float* y) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride) y[i] = x[i] + y[i];
}

struct Node {
  int value;
  Node* next;
};
__global__ void sum_of_list(const Node* head, int* sum) {
  for (const Node* node = head; node != nullptr; node = node->next) *sum += node->value;
}

int main(void) {
  int N = 1 << 14;
  float *x, *y;
  cudaMallocManaged(&x, N * sizeof(float));
  cudaMallocManaged(&y, N * sizeof(float));
  for (int i = 0; i < N; i++) {
    x[i] = 1.0f;
    y[i] = 2.0f;
  }
  int device = -1;
  cudaGetDevice(&device);
#if CUDART_VERSION >= 13000  // takes a location, not a device number
  const cudaMemLocation here{cudaMemLocationTypeDevice, device};
  cudaMemAdvise(x, N * sizeof(float), cudaMemAdviseSetReadMostly, here);
  cudaMemPrefetchAsync(x, N * sizeof(float), here, 0, NULL);
#else
  cudaMemAdvise(x, N * sizeof(float), cudaMemAdviseSetReadMostly, device);
  cudaMemPrefetchAsync(x, N * sizeof(float), device, NULL);
  cudaMemPrefetchAsync(y, N * sizeof(float), cudaCpuDeviceId);
#endif
  add<<<(N + 255) / 256, 256>>>(N, x, y);
  cudaDeviceSynchronize();
  float maxError = 0.0f;
  for (int i = 0; i < N; i++) maxError = std::fmax(maxError, std::fabs(y[i] - 3.0f));

  Node* head = nullptr;
  int* sum;
  cudaMallocManaged((void**)&sum, sizeof(int));
  *sum = 0;
  for (int i = 1; i <= 10; ++i) {
    Node* node;
    cudaMallocManaged(&node, sizeof(Node));
    *node = {i, head};
    head = node;
  }
  sum_of_list<<<1, 1>>>(head, sum);
  cudaDeviceSynchronize();
  bool ok = maxError == 0.0f && *sum == 55;
  float* copy;
  cudaMalloc(&copy, 4);
  ok = ok && cudaMemcpy(copy, x, 4, cudaMemcpyHostToDevice) == cudaSuccess;
  ok = ok && cudaMemcpy(copy, x, 4, cudaMemcpyDeviceToDevice) == cudaSuccess;
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, x);
  ok = ok && attributes.type == cudaMemoryTypeManaged;
  cudaFree(x);
  cudaFree(y);
  std::cout << (ok ? "PASS" : "FAIL") << '\n';
  return ok ? 0 : 1;
}
