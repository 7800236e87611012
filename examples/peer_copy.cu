// Copies between GPUs: an array goes once round all of them, and each adds its number + 1. Events hand it
// over. With one GPU there is nothing to copy to, and the program says so.
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

__global__ void add(int* data, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += value;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices\n", devices);
  if (devices < 2) {
    std::printf("peer copies need two devices: skipped\n");
    return 0;
  }

  const int n = 50000, threads = 256, blocks = (n + threads - 1) / threads;
  const size_t bytes = n * sizeof(int);
  std::vector<int> data(n), result(n);
  for (int i = 0; i < n; ++i) data[i] = i;

  std::vector<int*> memory(devices);
  std::vector<cudaStream_t> streams(devices);
  std::vector<cudaEvent_t> sent(devices);
  for (int device = 0; device < devices; ++device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&memory[device], bytes));
    CHECK(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&sent[device], cudaEventDisableTiming));
  }
  CHECK(cudaMemcpy(memory[0], data.data(), bytes, cudaMemcpyHostToDevice));

  for (int device = 0; device < devices; ++device) {
    const int next = (device + 1) % devices;
    CHECK(cudaSetDevice(device));
    if (device > 0) CHECK(cudaStreamWaitEvent(streams[device], sent[device - 1], 0));
    add<<<blocks, threads, 0, streams[device]>>>(memory[device], n, device + 1);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyPeerAsync(memory[next], next, memory[device], device, bytes, streams[device]));
    CHECK(cudaEventRecord(sent[device], streams[device]));
  }
  CHECK(cudaEventSynchronize(sent[devices - 1]));
  CHECK(cudaSetDevice(0));
  CHECK(cudaMemcpy(result.data(), memory[0], bytes, cudaMemcpyDeviceToHost));

  for (int device = 0; device < devices; ++device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaEventDestroy(sent[device]));
    CHECK(cudaStreamDestroy(streams[device]));
    CHECK(cudaFree(memory[device]));
  }
  int errors = 0;
  for (int i = 0; i < n; ++i) errors += result[i] != data[i] + devices * (devices + 1) / 2;
  std::printf("once round %d devices: %d errors: %s\n", devices, errors, errors == 0 ? "PASS" : "FAIL");
  return errors == 0 ? 0 : 1;
}
