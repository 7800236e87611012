// Host and kernel communicate through pinned memory, with fences.
#include <cstdio>

__global__ void answer(volatile int* flags) {
  flags[0] = 1;
  __threadfence_system();
  while (flags[1] != 1) {
  }
  __threadfence_system();
  flags[2] = 42;
  __threadfence_system();
  flags[0] = 2;
}

int main() {
  volatile int* flags;
  cudaHostAlloc((void**)&flags, 3 * sizeof(int), cudaHostAllocMapped);
  for (int i = 0; i < 3; ++i) flags[i] = 0;
  int* device_flags;
  cudaHostGetDevicePointer(&device_flags, (void*)flags, 0);
  answer<<<1, 1>>>(device_flags);
  while (flags[0] != 1) {
  }
  flags[1] = 1;
  while (flags[0] != 2) {
  }
  const int value = flags[2];
  cudaDeviceSynchronize();
  cudaFreeHost((void*)flags);
  puts(value == 42 ? "PASS" : "FAIL");
  return value == 42 ? 0 : 1;
}
