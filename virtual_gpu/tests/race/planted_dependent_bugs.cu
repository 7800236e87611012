// Programmatic dependent launches with one missing synchronisation each, and the same without the bug.
// Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda_runtime.h>

#include "overlap/gpu/graph.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Graph;
using overlap::Stream;
using planted::kCount;

constexpr int kHalf = kCount / 2;  // threads of each of two blocks

__device__ int thread_number() { return static_cast<int>(blockIdx.x * kHalf + threadIdx.x); }

/// Triggers before its work, so that the next kernel of the stream starts early.
__global__ void fill_late(int* data, int value) {
  cudaTriggerProgrammaticLaunchCompletion();
  data[thread_number()] = value;
}
__global__ void add_late(const int* from, int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  to[thread_number()] += from[thread_number()];
}
__global__ void add_in_order(const int* from, int* to, bool synchronizes) {
  if (synchronizes) cudaGridDependencySynchronize();
  to[thread_number()] += from[kCount - 1 - thread_number()];
}
__global__ void fill_in_order(int* data, bool synchronizes) {
  if (synchronizes && threadIdx.x == 0) cudaGridDependencySynchronize();
  __syncthreads();
  data[kCount - 1 - thread_number()] = 5;
}
/// Reads nothing of the kernel before it.
__global__ void fill_between(int* data, bool synchronizes) {
  cudaTriggerProgrammaticLaunchCompletion();
  if (synchronizes) cudaGridDependencySynchronize();
  data[thread_number()] = 3;
}

class Launch {
 public:
  explicit Launch(cudaStream_t stream) {
    attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute_.val.programmaticStreamSerializationAllowed = 1;
    config_ = {2, kHalf, 0, stream, &attribute_, 1};
  }
  const cudaLaunchConfig_t* operator&() const { return &config_; }

 private:
  cudaLaunchAttribute attribute_{};
  cudaLaunchConfig_t config_{};
};

/// The case that calls `enqueue` with a stream, a buffer and a buffer of zeros, and waits.
planted::Case on_a_stream(void (*enqueue)(const Stream& stream, int* data, int* sum, bool fixed)) {
  return [enqueue](bool fixed) {
    const DeviceBuffer<int> data(0, kCount), sum(0, kCount);
    const Stream stream(0);
    cudaMemsetAsync(sum.data(), 0, sum.bytes(), stream);
    enqueue(stream, data.data(), sum.data(), fixed);
    cudaStreamSynchronize(stream);
  };
}

// ---- dependent_read: the dependent kernel reads what its primary kernel writes ---------------------------
void dependent_read(const Stream& stream, int* data, int* sum, bool fixed) {
  const Launch dependent(stream);
  fill_late<<<2, kHalf, 0, stream>>>(data, 1);                     // @dependent_read
  cudaLaunchKernelEx(&dependent, add_in_order, data, sum, fixed);  // @dependent_read
}

// ---- dependent_overwrite: the dependent kernel overwrites what its primary kernel still reads ------------
void dependent_overwrite(const Stream& stream, int* data, int* sum, bool fixed) {
  const Launch dependent(stream);
  cudaMemsetAsync(data, 0, planted::kBytes, stream);
  add_late<<<2, kHalf, 0, stream>>>(data, sum);                // @dependent_overwrite
  cudaLaunchKernelEx(&dependent, fill_in_order, data, fixed);  // @dependent_overwrite
}

// ---- dependent_chain: of three kernels in a row, the second does not synchronise -------------------------
void dependent_chain(const Stream& stream, int* data, int* sum, bool fixed) {
  const DeviceBuffer<int> other(0, kCount);
  const Launch dependent(stream);
  fill_late<<<2, kHalf, 0, stream>>>(data, 1);  // @dependent_chain
  cudaLaunchKernelEx(&dependent, fill_between, other.data(), fixed);
  cudaLaunchKernelEx(&dependent, add_in_order, data, sum, true);  // @dependent_chain
  cudaStreamSynchronize(stream);                                  // before `other` is freed
}

// ---- dependent_twice: the second call overwrites data that the first call may still write and read -------
void dependent_twice(const Stream& stream, int* data, int* sum, bool fixed) {
  const Launch dependent(stream);
  for (int call = 0; call < 2; ++call) {
    cudaLaunchKernelEx(&dependent, fill_between, data, fixed);  // @dependent_twice @dependent_twice
    cudaLaunchKernelEx(&dependent, add_in_order, data, sum, true);
  }
}

// ---- dependent_graph: as dependent_read, in a graph ------------------------------------------------------
void dependent_graph(const Stream& stream, int* data, int* sum, bool fixed) {
  const Launch dependent(stream);
  const Graph graph = Graph::capture(stream, [&] {
    fill_late<<<2, kHalf, 0, stream>>>(data, 1);                     // @dependent_graph
    cudaLaunchKernelEx(&dependent, add_in_order, data, sum, fixed);  // @dependent_graph
  });
  for (int launch = 0; launch < 2; ++launch) graph.launch(stream);
  cudaStreamSynchronize(stream);
}

const planted::Cases kCases = {
    {"dependent_read", on_a_stream(dependent_read)},
    {"dependent_overwrite", on_a_stream(dependent_overwrite)},
    {"dependent_chain", on_a_stream(dependent_chain)},
    {"dependent_twice", on_a_stream(dependent_twice)},
    {"dependent_graph", on_a_stream(dependent_graph)},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
