// Copies and kernels in two streams: while one stream computes a piece, the other copies the next. The host's
// memory is pinned, so that the copies are asynchronous; events take the time.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    const cudaError_t error = (call);                                                                \
    if (error != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(1);                                                                                  \
    }                                                                                                \
  } while (0)

__global__ void polynomial(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (in[i] * 2 + 3) * in[i] + 1;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 1 << 18, pieces = 8, piece = n / pieces, threads = 256;
  float *in = nullptr, *out = nullptr;
  CHECK(cudaMallocHost(&in, n * sizeof(float)));
  CHECK(cudaMallocHost(&out, n * sizeof(float)));
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i % 100);

  cudaStream_t streams[2];
  float *device_in[2], *device_out[2];
  for (int s = 0; s < 2; ++s) {
    CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device_in[s], piece * sizeof(float)));
    CHECK(cudaMalloc(&device_out[s], piece * sizeof(float)));
  }
  cudaEvent_t start, second_done, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreateWithFlags(&second_done, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&stop));

  CHECK(cudaEventRecord(start, streams[0]));
  CHECK(cudaStreamWaitEvent(streams[1], start, 0));
  for (int p = 0; p < pieces; ++p) {
    const int s = p % 2;
    const size_t bytes = piece * sizeof(float);
    CHECK(cudaMemcpyAsync(device_in[s], in + p * piece, bytes, cudaMemcpyHostToDevice, streams[s]));
    polynomial<<<(piece + threads - 1) / threads, threads, 0, streams[s]>>>(device_in[s], device_out[s],
                                                                            piece);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(out + p * piece, device_out[s], bytes, cudaMemcpyDeviceToHost, streams[s]));
  }
  CHECK(cudaEventRecord(second_done, streams[1]));
  CHECK(cudaStreamWaitEvent(streams[0], second_done, 0));
  CHECK(cudaEventRecord(stop, streams[0]));
  CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));

  int errors = 0;
  for (int i = 0; i < n; ++i) errors += out[i] != (in[i] * 2 + 3) * in[i] + 1;
  for (int s = 0; s < 2; ++s) {
    CHECK(cudaStreamDestroy(streams[s]));
    CHECK(cudaFree(device_in[s]));
    CHECK(cudaFree(device_out[s]));
  }
  for (cudaEvent_t event : {start, second_done, stop}) CHECK(cudaEventDestroy(event));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));

  const bool passed = errors == 0 && milliseconds > 0;
  std::printf("%d pieces in two streams, %.3f ms: %d errors: %s\n", pieces, static_cast<double>(milliseconds),
              errors, passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
