// A graph: two branches of kernels are captured once and launched many times, with one call each.
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

__global__ void scale(const int* in, int* out, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * factor;
}

__global__ void combine(int* sum, const int* a, const int* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += a[i] - b[i];
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices, using device 0\n", devices);
  CHECK(cudaSetDevice(0));

  const int n = 50000, launches = 10, threads = 256, blocks = (n + threads - 1) / threads;
  const size_t bytes = n * sizeof(int);
  std::vector<int> data(n), result(n);
  for (int i = 0; i < n; ++i) data[i] = i % 1000;
  int *in = nullptr, *a = nullptr, *b = nullptr, *sum = nullptr;
  for (int** memory : {&in, &a, &b, &sum}) CHECK(cudaMalloc(memory, bytes));
  CHECK(cudaMemcpy(in, data.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(sum, 0, bytes));

  cudaStream_t stream, branch;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaDeviceSynchronize());  // the streams do not wait for the default stream

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(branch, fork, 0));
  scale<<<blocks, threads, 0, stream>>>(in, a, n, 5);
  scale<<<blocks, threads, 0, branch>>>(in, b, n, 2);
  CHECK(cudaEventRecord(join, branch));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  combine<<<blocks, threads, 0, stream>>>(sum, a, b, n);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int launch = 0; launch < launches; ++launch) CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(result.data(), sum, bytes, cudaMemcpyDeviceToHost));

  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  for (cudaEvent_t event : {fork, join}) CHECK(cudaEventDestroy(event));
  for (cudaStream_t each : {stream, branch}) CHECK(cudaStreamDestroy(each));
  for (int* memory : {in, a, b, sum}) CHECK(cudaFree(memory));

  int errors = 0;
  for (int i = 0; i < n; ++i) errors += result[i] != 3 * launches * data[i];
  std::printf("%d launches of a graph: %d errors: %s\n", launches, errors, errors == 0 ? "PASS" : "FAIL");
  return errors == 0 ? 0 : 1;
}
