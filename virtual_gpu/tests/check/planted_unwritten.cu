// Programs that read memory which nothing has written, and the same programs that write it first. Command
// line: ../race/planted.hpp. "@CASE" marks the read and, if there is one, the allocation.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/stream.hpp"
#include "phases.cuh"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::DeviceGuard;
using overlap::PinnedBuffer;
using planted::fill;
using planted::kBytes;
using planted::kCount;
namespace ptx = cuda::ptx;

void synchronize() { CUDA_CHECK(cudaDeviceSynchronize()); }

/// Reads the last word.
__global__ void read_last(const int* words, int* sum) {
  *sum = words[kCount - 1];  // @never @part @of_peer @over @second_time @gathered @summed
}
void use(const int* words) {
  const DeviceBuffer<int> sum(0, 1);
  read_last<<<1, 1>>>(words, sum.data());
  synchronize();
}
/// Clears the first `words` words.
void write(const DeviceBuffer<int>& buffer, int words) {
  CUDA_CHECK(cudaMemset(buffer.data(), 0, static_cast<std::size_t>(words) * sizeof(int)));
}

// ---- global memory ----------------------------------------------------------------------------------
void never(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @never
  if (fixed) write(words, kCount);
  use(words.data());
}
void part(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @part
  fill<<<1, fixed ? kCount : kCount - 1>>>(words.data(), 1);
  use(words.data());
}
void over(bool fixed) {  // a copy of unwritten memory overwrites written memory
  const DeviceBuffer<int> words(0, kCount), others(0, kCount);  // @over
  write(words, kCount);
  if (fixed) write(others, kCount);
  CUDA_CHECK(cudaMemcpy(words.data(), others.data(), kBytes, cudaMemcpyDefault));
  use(words.data());
}
void of_peer(bool fixed) {
  const DeviceBuffer<int> theirs(1, kCount), mine(0, kCount);  // @of_peer
  {
    const DeviceGuard guard(1);
    write(theirs, fixed ? kCount : kCount - 1);
    synchronize();
  }
  CUDA_CHECK(cudaMemcpyPeer(mine.data(), 0, theirs.data(), 1, kBytes));
  use(mine.data());
}
void second_time(bool fixed) {  // freed memory that is allocated again is unwritten
  for (int i = 0; i < 2; ++i) {
    const DeviceBuffer<int> words(0, kCount);  // @second_time
    if (i == 0 || fixed) {
      write(words, kCount);
      use(words.data());
    }
    if (i == 1) use(words.data());
  }
}
void by_host(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);
  PinnedBuffer<int> copy(kCount);  // @by_host
  write(words, fixed ? 8 : 7);
  CUDA_CHECK(cudaMemcpy(copy.data(), words.data(), kBytes, cudaMemcpyDefault));
  if (copy.data()[7] != 0) std::puts("not zero");  // @by_host
}
void managed(bool fixed) {  // that the host and the kernels of both GPUs access it is no error
  const DeviceBuffer<int> words(0, kCount);
  int* copy = nullptr;
  CUDA_CHECK(cudaMallocManaged(&copy, kBytes));  // @managed
  copy[kCount - 1] = 0;
  for (int gpu : {1, 0}) {
    const DeviceGuard guard(gpu);
    fill<<<1, kCount>>>(copy, 1);
    synchronize();
  }
  write(words, fixed ? 8 : 7);
  CUDA_CHECK(cudaMemcpy(copy, words.data(), kBytes, cudaMemcpyDefault));
  if (copy[7] != 0) std::puts("not zero");  // @managed
  CUDA_CHECK(cudaFree(copy));
}

__global__ void count(int* words) { atomicAdd(words, 1); }  // @add
void add(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @add
  if (fixed) write(words, 1);
  count<<<1, 4>>>(words.data());
  synchronize();
}
__global__ void copy_in_kernel(int* words) {
  memcpy(words + kCount / 2, words, kBytes / 2);
  words[0] = words[kCount / 2 + 3];  // @in_kernel
}
void in_kernel(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @in_kernel
  write(words, fixed ? 4 : 3);
  copy_in_kernel<<<1, 1>>>(words.data());
  synchronize();
}

/// Has padding between its members, which nothing writes.
struct Padded {
  char kind;
  double value;
};
__global__ void make_padded(Padded* items, bool fixed) {
  items[threadIdx.x].kind = 'a';
  if (fixed) items[threadIdx.x].value = 1;
}
__global__ void copy_padded(Padded* to, const Padded* from) {
  to[threadIdx.x] = from[threadIdx.x];
  if (from[threadIdx.x].value < 0) to[threadIdx.x].value = 0;  // @padding
}
void padding(bool fixed) {
  const DeviceBuffer<Padded> from(0, 4), to(0, 4);  // @padding
  make_padded<<<1, 4>>>(from.data(), fixed);
  copy_padded<<<1, 4>>>(to.data(), from.data());
  synchronize();
}

// ---- shared memory ----------------------------------------------------------------------------------
__global__ void reverse(int* words, int writers) {
  __shared__ int cells[64];  // @shared
  const int i = static_cast<int>(threadIdx.x);
  if (i < writers) cells[i] = i;
  __syncthreads();
  words[i] = cells[63 - i];  // @shared
}
void shared(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);
  reverse<<<1, 64>>>(words.data(), fixed ? 64 : 63);
  synchronize();
}
__global__ void add_up(int* words, bool fixed) {
  extern __shared__ int sums[];
  if (fixed) sums[threadIdx.x] = 0;
  sums[threadIdx.x] += 1;  // @dynamic
  words[threadIdx.x] = sums[threadIdx.x];
}
void dynamic(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);
  add_up<<<1, 8, 8 * sizeof(int)>>>(words.data(), fixed);
  synchronize();
}
__global__ void keep(int* words, bool fixed) {  // shared memory does not outlive its block
  __shared__ int kept;                          // @block_before
  if (blockIdx.x == 0 || fixed) kept = 1;
  words[blockIdx.x] = kept;  // @block_before
}
void block_before(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);
  keep<<<4, 1>>>(words.data(), fixed);
  synchronize();
}
/// Runs the kernel on kCount words; the bug: the last one is unwritten.
void copy_all(void (*kernel)(const int* from, int* to), bool fixed) {
  const DeviceBuffer<int> from(0, kCount), to(0, kCount);
  write(from, fixed ? kCount : kCount - 1);
  kernel<<<1, kCount>>>(from.data(), to.data());
  synchronize();
}
__global__ void take_async(const int* from, int* to) {
  __shared__ int slots[kCount];  // @async
  auto pipeline = cuda::make_pipeline();
  pipeline.producer_acquire();
  cuda::memcpy_async(&slots[threadIdx.x], from + threadIdx.x, sizeof(int), pipeline);
  pipeline.producer_commit();
  pipeline.consumer_wait();
  to[threadIdx.x] = slots[threadIdx.x];  // @async
}
void async(bool fixed) { copy_all(take_async, fixed); }
__global__ void take_bulk(const int* from, int* to) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kCount];  // @bulk
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    phases::expect_bytes(&full, kBytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, from, kBytes, &full);
  }
  phases::await_phase(&full, 0);
  to[threadIdx.x] = tile[threadIdx.x];  // @bulk
}
void bulk(bool fixed) { copy_all(take_bulk, fixed); }

// ---- libraries --------------------------------------------------------------------------------------
// A GEMM of 16 x 16: if the last word of A is unwritten, one row of C counts as unwritten, the others do not.
__global__ void read_corners(const float* c, float* sum) {
  *sum = c[0] + c[16 * 16 - 1];  // @multiplied
}
void multiplied(bool fixed) {
  const DeviceBuffer<float> a(0, 256), b(0, 256), c(0, 256), sum(0, 1);  // @multiplied
  CUDA_CHECK(cudaMemset(a.data(), 0, a.bytes() - (fixed ? 0 : sizeof(float))));
  CUDA_CHECK(cudaMemset(b.data(), 0, b.bytes()));
  cublasHandle_t handle = nullptr;
  CUBLAS_CHECK(cublasCreate(&handle));
  const float alpha = 1, beta = 0;
  CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, &alpha, a.data(), 16, b.data(), 16,
                           &beta, c.data(), 16));
  read_corners<<<1, 1>>>(c.data(), sum.data());
  synchronize();
  CUBLAS_CHECK(cublasDestroy(handle));
}

/// Runs `call` on two ranks and reads word `last` of rank 0's result; the bug: rank 1 lacks its last word.
template <class Call>
void of_two_ranks(bool fixed, int last, Call call) {
  std::vector<ncclComm_t> ranks(2);
  NCCL_CHECK(ncclCommInitAll(ranks.data(), 2, nullptr));
  std::vector<DeviceBuffer<int>> from, to;
  for (int rank = 0; rank < 2; ++rank) {
    from.emplace_back(rank, kCount);
    to.emplace_back(rank, 2 * kCount);  // @gathered @summed
    const DeviceGuard guard(rank);
    write(from[rank], kCount - (rank == 1 && !fixed));
    CUDA_CHECK(cudaMemset(to[rank].data(), 0, to[rank].bytes()));
  }
  NCCL_CHECK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) NCCL_CHECK(call(from[rank].data(), to[rank].data(), ranks[rank]));
  NCCL_CHECK(ncclGroupEnd());
  const DeviceGuard guard(0);
  use(to[0].data() + last - (kCount - 1));
}
void gathered(bool fixed) {
  of_two_ranks(fixed, 2 * kCount - 1, [](const int* from, int* to, ncclComm_t rank) {
    return ncclAllGather(from, to, kCount, ncclInt, rank, nullptr);
  });
}
void summed(bool fixed) {
  of_two_ranks(fixed, kCount - 1, [](const int* from, int* to, ncclComm_t rank) {
    return ncclAllReduce(from, to, kCount, ncclInt, ncclSum, rank, nullptr);
  });
}

// Algorithms of CUB: a result counts as unwritten only if it depends on a word that nothing has written.
__global__ void read_result(const unsigned int* word, int* sum) {
  *sum = static_cast<int>(*word);  // @scanned @added @sorted @selected
}
/// `call` computes results from kCount words, of which the first `words` are written; result `used` is read.
template <class Call>
void by_cub(int words, int used, Call call) {
  using Word = unsigned int;
  const DeviceBuffer<Word> from(0, kCount), to(0, 2 * kCount);  // @scanned @added @sorted @selected
  CUDA_CHECK(cudaMemset(from.data(), 0, static_cast<std::size_t>(words) * sizeof(Word)));
  CUDA_CHECK(cudaMemset(to.data(), 0, to.bytes()));
  std::size_t bytes = 0;
  CUDA_CHECK(call(nullptr, bytes, from.data(), to.data() + kCount));
  const DeviceBuffer<char> temporary(0, bytes);
  CUDA_CHECK(call(temporary.data(), bytes, from.data(), to.data() + kCount));
  const DeviceBuffer<int> sum(0, 1);
  read_result<<<1, 1>>>(to.data() + kCount + used, sum.data());
  synchronize();
}
void scanned(bool fixed) {  // the last sum adds all words but the last
  by_cub(fixed ? kCount - 1 : kCount - 2, kCount - 1, [](void* temporary, auto& bytes, auto* from, auto* to) {
    return cub::DeviceScan::ExclusiveSum(temporary, bytes, from, to, kCount);
  });
}
void added(bool fixed) {
  by_cub(fixed ? kCount : kCount - 1, 0, [](void* temporary, auto& bytes, auto* from, auto* to) {
    return cub::DeviceReduce::Sum(temporary, bytes, from, to, kCount);
  });
}
void sorted(bool fixed) {  // an unwritten word is all ones, so it sorts to the end
  by_cub(kCount - 1, kCount - 1 - fixed, [](void* temporary, auto& bytes, auto* from, auto* to) {
    return cub::DeviceRadixSort::SortKeys(temporary, bytes, from, to, kCount);
  });
}
void selected(bool fixed) {
  by_cub(kCount - 1, kCount - 1 - fixed, [](void* temporary, auto& bytes, auto* from, auto* to) {
    return cub::DeviceSelect::If(temporary, bytes, from, to, to - 1, kCount, [](auto) { return true; });
  });
}

const planted::Cases kCases = {{"never", never},
                               {"part", part},
                               {"over", over},
                               {"of_peer", of_peer},
                               {"second_time", second_time},
                               {"by_host", by_host},
                               {"managed", managed},
                               {"add", add},
                               {"in_kernel", in_kernel},
                               {"padding", padding},
                               {"shared", shared},
                               {"dynamic", dynamic},
                               {"block_before", block_before},
                               {"async", async},
                               {"bulk", bulk},
                               {"multiplied", multiplied},
                               {"gathered", gathered},
                               {"summed", summed},
                               {"scanned", scanned},
                               {"added", added},
                               {"sorted", sorted},
                               {"selected", selected}};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
