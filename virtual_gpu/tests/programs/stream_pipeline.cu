// Chunks in several streams: pinned memory, callbacks, events, per-thread stream, stream-ordered allocation.
#include <cstdio>
#include <vector>

#define CHECK(x)                                                                   \
  do {                                                                             \
    cudaError_t e = (x);                                                           \
    if (e != cudaSuccess) return printf("%s: %s\n", #x, cudaGetErrorString(e)), 1; \
  } while (0)

__global__ void kernel(float* a, int offset, int n) {
  int i = offset + threadIdx.x + blockIdx.x * blockDim.x;
  if (i < offset + n) {
    float x = (float)i, s = sinf(x), c = cosf(x);
    a[i] = a[i] + sqrtf(s * s + c * c);
  }
}

void CUDART_CB count(cudaStream_t stream, cudaError_t status, void* data) {
  *(int*)data += status == cudaSuccess;
}

int main() {
  const int n = 1 << 13, nStreams = 4, chunk = n / nStreams;
  float *a, *d_a;
  CHECK(cudaMallocHost((void**)&a, n * sizeof(float)));
  CHECK(cudaMalloc((void**)&d_a, n * sizeof(float)));
  cudaStream_t stream[nStreams];
  cudaEvent_t startEvent, stopEvent;
  CHECK(cudaEventCreate(&startEvent));
  CHECK(cudaEventCreateWithFlags(&stopEvent, cudaEventBlockingSync));
  int called[nStreams] = {0};
  for (int i = 0; i < nStreams; ++i) CHECK(cudaStreamCreate(&stream[i]));
  for (int i = 0; i < n; ++i) a[i] = 0;
  CHECK(cudaEventRecord(startEvent, 0));
  for (int i = 0; i < nStreams; ++i) {
    int offset = i * chunk;
    CHECK(
        cudaMemcpyAsync(&d_a[offset], &a[offset], chunk * sizeof(float), cudaMemcpyHostToDevice, stream[i]));
    kernel<<<(chunk + 255) / 256, 256, 0, stream[i]>>>(d_a, offset, chunk);
    CHECK(
        cudaMemcpyAsync(&a[offset], &d_a[offset], chunk * sizeof(float), cudaMemcpyDeviceToHost, stream[i]));
    CHECK(cudaStreamAddCallback(stream[i], count, &called[i], 0));
  }
  CHECK(cudaEventRecord(stopEvent, 0));
  CHECK(cudaEventSynchronize(stopEvent));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, startEvent, stopEvent));
  CHECK(cudaDeviceSynchronize());
  bool ok = ms > 0;
  for (int i = 0; i < n; ++i) ok = ok && fabsf(a[i] - 1.0f) < 1e-6f;
  for (int i = 0; i < nStreams; ++i) ok = ok && called[i] == 1;

  float* scratch = nullptr;
  CHECK(cudaMallocAsync(&scratch, chunk * sizeof(float), stream[0]));
  CHECK(cudaMemsetAsync(scratch, 0, chunk * sizeof(float), stream[0]));
  kernel<<<(chunk + 255) / 256, 256, 0, stream[0]>>>(scratch, 0, chunk);
  CHECK(cudaMemcpyAsync(a, scratch, chunk * sizeof(float), cudaMemcpyDeviceToHost, stream[0]));
  CHECK(cudaFreeAsync(scratch, stream[0]));
  CHECK(cudaStreamSynchronize(stream[0]));
  ok = ok && fabsf(a[1] - 1.0f) < 1e-6f;
  kernel<<<1, 32, 0, cudaStreamPerThread>>>(d_a, 0, 32);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(cudaMemcpy(a, d_a, sizeof(float), cudaMemcpyDeviceToHost));
  ok = ok && fabsf(a[0] - 2.0f) < 1e-6f;
  for (cudaStream_t s : stream) CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(a));
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
