// Programs with one missing synchronisation each, and the same programs without the bug.
//   planted_bugs CASE bug|fixed SEED|time [GPUS]    (planted.hpp; GPUS: of the ring; others use one or two)
// "@CASE" marks the lines of the two accesses that race; the test reads the marks and expects both lines in
// the report. In the fixed program the same lines run in order.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstring>
#include <cuda/atomic>
#include <vector>

#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/graph.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Event;
using overlap::Graph;
using overlap::PinnedBuffer;
using overlap::Stream;
using planted::add;
using planted::fill;
using planted::kBytes;
using planted::kCount;

// ---- ring_wait: a ring all-gather in which a GPU forwards a shard before it has arrived -----------------
int ring_gpus = 4;
void ring_wait(bool fixed) {
  std::vector<Stream> streams;
  std::vector<DeviceBuffer<int>> slots;
  std::vector<std::vector<Event>> arrived(ring_gpus);
  for (int gpu = 0; gpu < ring_gpus; ++gpu) {
    streams.emplace_back(gpu);
    slots.emplace_back(gpu, ring_gpus * kCount);
    cudaSetDevice(gpu);
    fill<<<1, kCount, 0, streams[gpu]>>>(slots[gpu].data() + gpu * kCount, gpu);
    for (int step = 0; step < ring_gpus; ++step) arrived[gpu].emplace_back(gpu);
  }
  for (int step = 0; step + 1 < ring_gpus; ++step) {
    for (int gpu = 0; gpu < ring_gpus; ++gpu) {
      const int next = (gpu + 1) % ring_gpus, shard = (gpu - step + ring_gpus) % ring_gpus;
      const int previous = (gpu + ring_gpus - 1) % ring_gpus;
      if (step > 0 && fixed) cudaStreamWaitEvent(streams[gpu], arrived[previous][step - 1]);
      int* to = slots[next].data() + shard * kCount;
      const int* from = slots[gpu].data() + shard * kCount;
      cudaMemcpyPeerAsync(to, next, from, gpu, kBytes, streams[gpu]);  // @ring_wait @ring_wait
      cudaEventRecord(arrived[gpu][step], streams[gpu]);
    }
  }
  for (int gpu = 0; gpu < ring_gpus; ++gpu) cudaStreamSynchronize(streams[gpu]);
}

// ---- consumer_wait: a kernel reads the destination of another stream's copy -----------------------------
void consumer_wait(bool fixed) {
  PinnedBuffer<int> source(kCount);
  for (int i = 0; i < kCount; ++i) source[i] = i;
  DeviceBuffer<int> data(0, kCount), sum(0, kCount);
  Stream transfer(0), compute(0);
  Event arrived(0);
  cudaMemsetAsync(sum.data(), 0, sum.bytes(), compute);
  cudaMemcpyAsync(data.data(), source.data(), kBytes, cudaMemcpyHostToDevice, transfer);  // @consumer_wait
  cudaEventRecord(arrived, transfer);
  if (fixed) cudaStreamWaitEvent(compute, arrived);
  add<<<1, kCount, 0, compute>>>(data.data(), sum.data());  // @consumer_wait
  cudaStreamSynchronize(compute);
  cudaStreamSynchronize(transfer);
}

// ---- pulls_in_turn: two pulls out of GPU 1 run one after the other, but nothing orders them --------------
void pulls_in_turn(bool fixed) {
  const DeviceBuffer<int> from(1, kCount), to(0, kCount);
  const Stream first(0), second(0);
  const Event arrived(0);
  cudaDeviceEnablePeerAccess(1, 0);
  cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDefault, first);  // @pulls_in_turn
  cudaEventRecord(arrived, first);
  if (fixed) cudaStreamWaitEvent(second, arrived);
  cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDefault, second);  // @pulls_in_turn
  cudaStreamSynchronize(first);
  cudaStreamSynchronize(second);
}

// ---- two_streams: a kernel reads what a kernel on another stream writes ---------------------------------
void two_streams(bool fixed) {
  DeviceBuffer<int> data(0, kCount), sum(0, kCount);
  Stream first(0), second(0);
  Event filled(0);
  cudaMemsetAsync(sum.data(), 0, sum.bytes(), second);
  fill<<<1, kCount, 0, first>>>(data.data(), 1);  // @two_streams
  cudaEventRecord(filled, first);
  if (fixed) cudaStreamWaitEvent(second, filled);
  add<<<1, kCount, 0, second>>>(data.data(), sum.data());  // @two_streams
  cudaStreamSynchronize(first);
  cudaStreamSynchronize(second);
}

planted::Case in_one_block(void (*kernel)(int* data, bool fixed)) {
  return [kernel](bool fixed) {
    DeviceBuffer<int> data(0, kCount);
    fill<<<1, kCount>>>(data.data(), 1);
    kernel<<<1, kCount>>>(data.data(), fixed);
    cudaDeviceSynchronize();
  };
}

// ---- syncthreads: a thread reads the cell of shared memory that its neighbour writes --------------------
__global__ void rotate(int* data, bool fixed) {
  __shared__ int cells[kCount];
  cells[threadIdx.x] = data[threadIdx.x];  // @syncthreads
  if (fixed) __syncthreads();
  data[threadIdx.x] = cells[(threadIdx.x + 1) % kCount];  // @syncthreads
}

// ---- second_syncthreads: a thread refills its cell while a neighbour still reads it ---------------------
__global__ void rotate_twice(int* data, bool fixed) {
  __shared__ int cells[kCount];
  for (int round = 0; round < 2; ++round) {
    cells[threadIdx.x] = data[threadIdx.x] + round;  // @second_syncthreads
    __syncthreads();
    data[threadIdx.x] = cells[(threadIdx.x + 1) % kCount];  // @second_syncthreads
    if (fixed) __syncthreads();
  }
}

// ---- histogram: all threads increment one counter -------------------------------------------------------
__global__ void count(int* total, bool fixed) {
  if (fixed) {
    atomicAdd(total, 1);
  } else {
    *total += 1;  // @histogram @histogram
  }
}
void histogram(bool fixed) {
  DeviceBuffer<int> total(0, 1);
  cudaMemset(total.data(), 0, sizeof(int));
  count<<<4, 64>>>(total.data(), fixed);
  cudaDeviceSynchronize();
}

// ---- source_overwritten: the host overwrites pinned memory that a copy still reads ----------------------
void source_overwritten(bool fixed) {
  PinnedBuffer<int> source(kCount);
  for (int i = 0; i < kCount; ++i) source[i] = i;
  DeviceBuffer<int> data(0, kCount);
  Stream stream(0);
  constexpr auto kUp = cudaMemcpyHostToDevice;
  cudaMemcpyAsync(data.data(), source.data(), kBytes, kUp, stream);  // @source_overwritten
  if (fixed) cudaStreamSynchronize(stream);
  source[7] = -1;  // @source_overwritten
  cudaStreamSynchronize(stream);
}

// ---- early_read: the host reads the result before the copy has completed --------------------------------
void early_read(bool fixed) {
  PinnedBuffer<int> result(kCount);
  DeviceBuffer<int> data(0, kCount);
  Stream stream(0);
  fill<<<1, kCount, 0, stream>>>(data.data(), 1);
  cudaMemcpyAsync(result.data(), data.data(), data.bytes(), cudaMemcpyDeviceToHost, stream);  // @early_read
  if (fixed) cudaStreamSynchronize(stream);
  volatile int seen = result[3];  // @early_read
  (void)seen;
  cudaStreamSynchronize(stream);
}

// ---- relaxed_flag: a flag hands data to another kernel without release and acquire ----------------------
__global__ void produce(int* data, int* flag, bool fixed) {
  *data = 42;  // @relaxed_flag
  const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  ready.store(1, fixed ? cuda::memory_order_release : cuda::memory_order_relaxed);
}
__global__ void consume(const int* data, int* flag, int* result, bool fixed) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  while (ready.load(fixed ? cuda::memory_order_acquire : cuda::memory_order_relaxed) == 0) {
  }
  *result = *data;  // @relaxed_flag
}
void relaxed_flag(bool fixed) {
  DeviceBuffer<int> data(0, 1), flag(0, 1), result(0, 1);
  cudaMemset(flag.data(), 0, sizeof(int));
  cudaDeviceSynchronize();
  Stream producer(0), consumer(0);
  produce<<<1, 1, 0, producer>>>(data.data(), flag.data(), fixed);
  consume<<<1, 1, 0, consumer>>>(data.data(), flag.data(), result.data(), fixed);
  cudaStreamSynchronize(consumer);
  cudaStreamSynchronize(producer);
}

// ---- plain_flag: the flag is volatile, not atomic, and races itself -------------------------------------
__global__ void raise(volatile int* flag, bool fixed) {
  if (fixed) {
    cuda::atomic_ref<int, cuda::thread_scope_device>(*const_cast<int*>(flag))
        .store(1, cuda::memory_order_release);
  } else {
    *flag = 1;  // @plain_flag
  }
}
__global__ void await(volatile int* flag, bool fixed) {
  if (fixed) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*const_cast<int*>(flag));
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
  } else {
    while (*flag == 0) {  // @plain_flag
    }
  }
}
void plain_flag(bool fixed) {
  DeviceBuffer<int> flag(0, 1);
  cudaMemset(flag.data(), 0, sizeof(int));
  cudaDeviceSynchronize();
  Stream first(0), second(0);
  raise<<<1, 1, 0, second>>>(flag.data(), fixed);
  await<<<1, 1, 0, first>>>(flag.data(), fixed);
  cudaStreamSynchronize(first);
  cudaStreamSynchronize(second);
}

// ---- early_free: memory is freed while another GPU's stream may still copy from it ----------------------
void early_free(bool fixed) {
  int* data = nullptr;
  cudaSetDevice(0);
  cudaMalloc(&data, kBytes);
  cudaMemset(data, 0, kBytes);
  cudaDeviceSynchronize();
  DeviceBuffer<int> other(1, kCount);
  Stream stream(1);
  cudaMemcpyPeerAsync(other.data(), 1, data, 0, kBytes, stream);  // @early_free
  if (fixed) cudaStreamSynchronize(stream);
  CUDA_CHECK(cudaFree(data));  // @early_free
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

// ---- GEMMs of cuBLAS: 16 x 16 floats ---------------------------------------------------------------------
constexpr auto kN = CUBLAS_OP_N;
constexpr int kM = 16;
constexpr float kOne = 1, kZero = 0;

/// Three matrices, and a cuBLAS handle on the stream `compute`.
struct Matrices {
  Matrices() {
    CUBLAS_CHECK(cublasCreate(&blas));
    CUBLAS_CHECK(cublasSetStream(blas, compute));
    for (auto* matrix : {&a, &b, &c}) cudaMemset(matrix->data(), 0, matrix->bytes());
    cudaDeviceSynchronize();
  }
  ~Matrices() { cublasDestroy(blas); }
  DeviceBuffer<float> a{0, kCount}, b{0, kCount}, c{0, kCount};
  PinnedBuffer<float> host{kCount};
  Stream compute{0}, transfer{0};
  Event ready{0};
  cublasHandle_t blas = nullptr;
};

// ---- product_wait: a GEMM reads the destination of another stream's copy
void product_wait(bool fixed) {
  Matrices all;
  const float* a = all.a.data();
  float *b = all.b.data(), *c = all.c.data();
  std::memset(all.host.data(), 0, kBytes);
  cudaMemcpyAsync(b, all.host.data(), kBytes, cudaMemcpyHostToDevice, all.transfer);  // @product_wait
  cudaEventRecord(all.ready, all.transfer);
  if (fixed) cudaStreamWaitEvent(all.compute, all.ready);
  cublasSgemm(all.blas, kN, kN, kM, kM, kM, &kOne, a, kM, b, kM, &kZero, c, kM);  // @product_wait
  cudaDeviceSynchronize();
}

// ---- product_overwritten: an operand is overwritten before the GEMM has completed
void product_overwritten(bool fixed) {
  Matrices all;
  float *a = all.a.data(), *b = all.b.data(), *c = all.c.data();
  std::memset(all.host.data(), 0, kBytes);
  cublasSgemm(all.blas, kN, kN, kM, kM, kM, &kOne, a, kM, b, kM, &kZero, c, kM);  // @product_overwritten
  cudaEventRecord(all.ready, all.compute);
  if (fixed) cudaStreamWaitEvent(all.transfer, all.ready);
  cudaMemcpyAsync(a, all.host.data(), kBytes, cudaMemcpyHostToDevice, all.transfer);  // @product_overwritten
  cudaDeviceSynchronize();
}

// ---- product_read_early: the result is copied to the host before the GEMM has completed
void product_read_early(bool fixed) {
  Matrices all;
  float *a = all.a.data(), *b = all.b.data(), *c = all.c.data();
  cublasSgemm(all.blas, kN, kN, kM, kM, kM, &kOne, a, kM, b, kM, &kZero, c, kM);  // @product_read_early
  cudaEventRecord(all.ready, all.compute);
  if (fixed) cudaStreamWaitEvent(all.transfer, all.ready);
  cudaMemcpyAsync(all.host.data(), c, kBytes, cudaMemcpyDeviceToHost, all.transfer);  // @product_read_early
  cudaDeviceSynchronize();
}

// ---- product_sum: GEMMs on two streams add to the same rows of C. In the fixed program the second GEMM has
// rows 8 to 15 of each column: the address ranges of the two overlap, their elements do not
void product_sum(bool fixed) {
  Matrices all;
  float *a = all.a.data(), *b = all.b.data(), *c = all.c.data();
  float* d = fixed ? c + 8 : c;
  cublasSgemm(all.blas, kN, kN, 8, kM, kM, &kOne, a, kM, b, kM, &kOne, c, kM);  // @product_sum
  CUBLAS_CHECK(cublasSetStream(all.blas, all.transfer));
  cublasSgemm(all.blas, kN, kN, 8, kM, kM, &kOne, a, kM, b, kM, &kOne, d, kM);  // @product_sum
  cudaDeviceSynchronize();
}

// ---- graph_branches: two branches of a graph without an edge between them --------------------------------
void graph_branches(bool fixed) {
  DeviceBuffer<int> data(0, kCount), sum(0, kCount);
  Stream stream(0), other(0);
  Event fork(0), filled(0), join(0);
  cudaMemsetAsync(sum.data(), 0, sum.bytes(), stream);
  const Graph graph = Graph::capture(stream, [&] {
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(other, fork);
    fill<<<1, kCount, 0, stream>>>(data.data(), 1);  // @graph_branches
    cudaEventRecord(filled, stream);
    if (fixed) cudaStreamWaitEvent(other, filled);
    add<<<1, kCount, 0, other>>>(data.data(), sum.data());  // @graph_branches
    cudaEventRecord(join, other);
    cudaStreamWaitEvent(stream, join);
  });
  for (int launch = 0; launch < 2; ++launch) graph.launch(stream);
  cudaStreamSynchronize(stream);
}

// ---- graph_launch: another stream reads a buffer that a graph writes -------------------------------------
void graph_launch(bool fixed) {
  DeviceBuffer<int> data(0, kCount), sum(0, kCount);
  Stream stream(0), other(0);
  Event launched(0);
  cudaMemsetAsync(sum.data(), 0, sum.bytes(), other);
  const Graph graph = Graph::capture(stream, [&] {
    fill<<<1, kCount, 0, stream>>>(data.data(), 1);  // @graph_launch
  });
  graph.launch(stream);
  cudaEventRecord(launched, stream);
  if (fixed) cudaStreamWaitEvent(other, launched);
  add<<<1, kCount, 0, other>>>(data.data(), sum.data());  // @graph_launch
  cudaStreamSynchronize(stream);
  cudaStreamSynchronize(other);
}

// ---- graph_source: the host overwrites memory that a copy of a graph still reads -------------------------
void graph_source(bool fixed) {
  PinnedBuffer<int> source(kCount);
  for (int i = 0; i < kCount; ++i) source[i] = i;
  DeviceBuffer<int> data(0, kCount);
  Stream stream(0);
  constexpr auto kUp = cudaMemcpyHostToDevice;
  const Graph graph = Graph::capture(stream, [&] {
    cudaMemcpyAsync(data.data(), source.data(), kBytes, kUp, stream);  // @graph_source
  });
  source[7] = -1;  // no race: the graph is captured, not launched
  graph.launch(stream);
  if (fixed) cudaStreamSynchronize(stream);
  source[7] = -2;  // @graph_source
  cudaStreamSynchronize(stream);
}

const planted::Cases kCases = {
    {"ring_wait", ring_wait},
    {"consumer_wait", consumer_wait},
    {"pulls_in_turn", pulls_in_turn},
    {"two_streams", two_streams},
    {"syncthreads", in_one_block(rotate)},
    {"second_syncthreads", in_one_block(rotate_twice)},
    {"histogram", histogram},
    {"source_overwritten", source_overwritten},
    {"early_read", early_read},
    {"relaxed_flag", relaxed_flag},
    {"plain_flag", plain_flag},
    {"early_free", early_free},
    {"product_wait", product_wait},
    {"product_overwritten", product_overwritten},
    {"product_read_early", product_read_early},
    {"product_sum", product_sum},
    {"graph_branches", graph_branches},
    {"graph_launch", graph_launch},
    {"graph_source", graph_source},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases, &ring_gpus); }
