// Programs with one wrong access each, and the same programs without it. Command line: ../race/planted.hpp.
// "@CASE" marks the lines that the report must name: of the access, of the allocation, of the call that frees
// it. check_test.py has the other words of each report.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <cuda/pipeline>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::DeviceGuard;
using overlap::PinnedBuffer;
using planted::kBytes;
using planted::kCount;

void synchronize() { CUDA_CHECK(cudaDeviceSynchronize()); }
template <class T>
void clear(const DeviceBuffer<T>& buffer) {
  CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
}
/// Clears `words` and runs one block of the kernel with `dynamic` bytes of dynamic shared memory.
template <class Kernel>
void run(Kernel kernel, unsigned threads, const DeviceBuffer<int>& words, bool fixed,
         std::size_t dynamic = 0) {
  clear(words);
  kernel<<<1, threads, dynamic>>>(words.data(), fixed);  // @dynamic_too_small @dynamic_missing
  synchronize();
}

// ---- beyond an array in global memory ---------------------------------------------------------------
__global__ void store(int* words, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) words[i] = i;  // @one_past @pinned_by_kernel @odd_size
}
void one_past(bool fixed) {
  DeviceBuffer<int> words(0, kCount);  // @one_past
  store<<<5, 64>>>(words.data(), fixed ? kCount : kCount + 1);
  synchronize();
}
void odd_size(bool fixed) {
  char* words = nullptr;
  CUDA_CHECK(cudaMalloc(&words, fixed ? 12 : 10));  // @odd_size
  store<<<1, 3>>>(reinterpret_cast<int*>(words), 3);
  synchronize();
  CUDA_CHECK(cudaFree(words));
}
void pinned_by_kernel(bool fixed) {
  PinnedBuffer<int> words(kCount);  // @pinned_by_kernel
  store<<<5, 64>>>(words.data(), fixed ? kCount : kCount + 1);
  synchronize();
}
void pinned_by_host(bool fixed) {
  PinnedBuffer<int> words(kCount);                                // @pinned_by_host
  for (int i = 0; i < kCount + !fixed; ++i) words.data()[i] = i;  // @pinned_by_host
}

__global__ void take_neighbours(int* words, bool fixed) {
  const int i = static_cast<int>(threadIdx.x);
  const int left = fixed && i == 0 ? 0 : words[i - 1];  // @before
  words[kCount / 2 + i] = left;
}
void before(bool fixed) { run(take_neighbours, 8, DeviceBuffer<int>(0, kCount), fixed); }  // @before

// A negative index in an unsigned type: 16 GiB behind the array.
__global__ void take_unsigned(int* words, bool fixed) {
  const unsigned i = threadIdx.x;
  words[i] = words[fixed ? i : i - 1];  // @wrapped
}
void wrapped(bool fixed) { run(take_unsigned, 1, DeviceBuffer<int>(0, kCount), fixed); }  // @wrapped

__global__ void far(int* words, bool fixed) {
  if (fixed || threadIdx.x != 3) return;
  words[kCount + 2500] = 1;  // @far_behind
}
void far_behind(bool fixed) { run(far, 8, DeviceBuffer<int>(0, kCount), fixed); }  // @far_behind

struct Triple {
  int a, b, c, d, e;
};
__global__ void copy_triples(Triple* to, const Triple* from, int count) {
  const unsigned i = threadIdx.x;
  if (static_cast<int>(i) < count) to[i] = from[i];  // @structure
}
void structure(bool fixed) {
  const DeviceBuffer<Triple> to(0, 20), from(0, fixed ? 20 : 19);  // @structure
  clear(from);
  copy_triples<<<1, 32>>>(to.data(), from.data(), 20);
  synchronize();
}

__global__ void count_up(int* words, bool fixed) {
  atomicAdd(words + (fixed ? 0 : kCount), 1);  // @atomic
}
void atomic(bool fixed) { run(count_up, 4, DeviceBuffer<int>(0, kCount), fixed); }  // @atomic

__global__ void copy_bytes(int* words, bool fixed) {
  memcpy(words + kCount / 2, words, sizeof(int) * (kCount / 2 + !fixed));  // @copied
}
void copied(bool fixed) { run(copy_bytes, 1, DeviceBuffer<int>(0, kCount), fixed); }  // @copied
__global__ void set_bytes(int* words, bool fixed) {
  memset(words, 0, sizeof(int) * kCount + (fixed ? 0 : 3));  // @cleared
}
void cleared(bool fixed) { run(set_bytes, 1, DeviceBuffer<int>(0, kCount), fixed); }  // @cleared

// The runtime makes the copy, after the call has returned.
__global__ void copy_async(int* words, bool fixed) {
  __shared__ int slot;
  auto pipeline = cuda::make_pipeline();
  cuda::memcpy_async(&slot, words + (fixed ? 0 : kCount), sizeof(int), pipeline);  // @copied_later
  pipeline.producer_commit();
  pipeline.consumer_wait();
  words[0] = slot;
}
void copied_later(bool fixed) { run(copy_async, 1, DeviceBuffer<int>(0, kCount), fixed); }  // @copied_later

__device__ int pick(const int* words, unsigned i) { return words[i]; }  // @in_function
__global__ void through_function(int* words, bool fixed) {
  words[0] = pick(words, fixed ? 1 : kCount + threadIdx.x);
}
void in_function(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @in_function
  run(through_function, 1, words, fixed);
}

// ---- freed memory -----------------------------------------------------------------------------------
__global__ void read_word(const int* words, int* sum) {
  *sum = *words;  // @freed @peer_read @peer_disabled @peer_alone
}
void freed(bool fixed) {
  int *words = nullptr, *sum = nullptr;
  CUDA_CHECK(cudaMalloc(&words, kBytes));  // @freed
  CUDA_CHECK(cudaMalloc(&sum, kBytes));
  CUDA_CHECK(cudaMemset(words, 0, kBytes));
  if (!fixed) CUDA_CHECK(cudaFree(words));  // @freed
  read_word<<<1, 1>>>(words, sum);
  synchronize();
  if (fixed) CUDA_CHECK(cudaFree(words));
  CUDA_CHECK(cudaFree(sum));
}
void pinned_freed(bool fixed) {
  int* words = nullptr;
  CUDA_CHECK(cudaMallocHost(&words, kBytes));  // @pinned_freed
  words[3] = 1;
  if (!fixed) CUDA_CHECK(cudaFreeHost(words));  // @pinned_freed
  words[3] = 2;                                 // @pinned_freed
  if (fixed) CUDA_CHECK(cudaFreeHost(words));
}

// ---- shared and local memory ------------------------------------------------------------------------
__global__ void reverse(int* words, bool fixed) {
  __shared__ int cells[32];
  const int i = static_cast<int>(threadIdx.x);
  cells[i] = words[i];
  __syncthreads();
  words[i] = cells[32 - i - fixed];  // @shared_index
}
void shared_index(bool fixed) { run(reverse, 32, DeviceBuffer<int>(0, kCount), fixed); }

__global__ void by_pointer(int* words, bool fixed) {
  __shared__ int cells[32];  // @shared_pointer
  __shared__ int others[32];
  int* cell = cells + threadIdx.x;
  others[threadIdx.x] = words[threadIdx.x];
  for (int i = 0; i < 2; ++i, cell += fixed || threadIdx.x > 0 ? 0 : 32) *cell = 1;  // @shared_pointer
}
void shared_pointer(bool fixed) { run(by_pointer, 32, DeviceBuffer<int>(0, kCount), fixed); }

__global__ void stencil(int* words, bool fixed) {
  __shared__ float tile[8][9];
  const unsigned x = threadIdx.x % 8, y = threadIdx.x / 8;
  tile[y][x + (fixed || y > 0 ? 1 : 2)] = 1;  // @shared_row
  words[threadIdx.x] = 1;
}
void shared_row(bool fixed) { run(stencil, 64, DeviceBuffer<int>(0, kCount), fixed); }

__global__ void fill_dynamic(int* words, bool) {
  extern __shared__ int cells[];
  cells[threadIdx.x] = 1;  // @dynamic_too_small @dynamic_missing
  words[threadIdx.x] = cells[threadIdx.x];
}
void dynamic_too_small(bool fixed) {
  run(fill_dynamic, 33, DeviceBuffer<int>(0, kCount), fixed, sizeof(int) * (fixed ? 33 : 32));
}
void dynamic_missing(bool fixed) {
  run(fill_dynamic, 33, DeviceBuffer<int>(0, kCount), fixed, fixed ? 33 * sizeof(int) : 0);
}

__global__ void before_dynamic(int* words, bool fixed) {
  extern __shared__ int cells[];
  const unsigned i = threadIdx.x;
  cells[i] = 1;
  __syncthreads();
  words[i] = cells[static_cast<int>(i) - !fixed];  // @dynamic_before
}
void dynamic_before(bool fixed) {
  run(before_dynamic, 8, DeviceBuffer<int>(0, kCount), fixed, 8 * sizeof(int));
}

__global__ void histogram(int* words, bool fixed) {
  int bins[8] = {};
  for (int i = 0; i < 40; ++i) ++bins[(words[i] + i) % (fixed ? 8 : 9)];  // @local_index
  words[threadIdx.x] = bins[threadIdx.x];
}
void local_index(bool fixed) { run(histogram, 4, DeviceBuffer<int>(0, kCount), fixed); }

__global__ void backwards(int* words, bool fixed) {
  int last[4] = {1, 2, 3, 4};
  const int i = words[0] + (fixed ? 0 : -1);
  words[1] = last[i];  // @local_negative
}
void local_negative(bool fixed) { run(backwards, 1, DeviceBuffer<int>(0, kCount), fixed); }

struct Running {
  __device__ int sum(int count) const {
    int total = 0;
    for (int i = 0; i < count; ++i) total += of_lane[i];  // @local_member
    return total;
  }
  int lanes, of_lane[4];
};
__global__ void add_lanes(int* words, bool fixed) {
  const Running running = {4, {words[0], words[1], words[2], words[3]}};
  words[4] = running.sum(running.lanes + !fixed);
}
void local_member(bool fixed) { run(add_lanes, 1, DeviceBuffer<int>(0, kCount), fixed); }

__global__ void transpose(int* words, bool fixed) {
  int tile[2][3] = {{1, 2, 3}, {4, 5, 6}};
  int* first = words;
  // The columns that the compiler reports do not count additional spaces.
  // clang-format off
  for (int i = 0; i < 3 + !fixed; ++i)    first[i] = tile[words[5]][first[6] + i];  // @local_row
  // clang-format on
}
void local_row(bool fixed) { run(transpose, 1, DeviceBuffer<int>(0, kCount), fixed); }

// ---- misaligned vectors -----------------------------------------------------------------------------
__global__ void load_vector(int* words, bool fixed) {
  const float4 four = *reinterpret_cast<const float4*>(words + (fixed ? 4 : 5));  // @misaligned
  words[0] = static_cast<int>(four.x);
}
void misaligned(bool fixed) { run(load_vector, 1, DeviceBuffer<int>(0, kCount), fixed); }  // @misaligned
__global__ void store_pair(int* words, bool fixed) {
  __shared__ int cells[64];                                                  // @misaligned_shared
  *reinterpret_cast<int2*>(&cells[fixed ? 2 : 3]) = make_int2(words[0], 1);  // @misaligned_shared
}
void misaligned_shared(bool fixed) { run(store_pair, 1, DeviceBuffer<int>(0, kCount), fixed); }

// ---- accesses of the host to device memory ----------------------------------------------------------
void host_reads(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @host_reads
  clear(words);
  int first = 0;
  if (fixed) {
    CUDA_CHECK(cudaMemcpy(&first, words.data(), sizeof first, cudaMemcpyDefault));
  } else {
    first = words.data()[7];  // @host_reads
  }
  if (first != 0) std::puts("not zero");
}
void host_writes(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @host_writes
  int* const out = fixed ? nullptr : words.data();
  if (out != nullptr) *out = 1;  // @host_writes
}
void host_copies(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @host_copies
  clear(words);
  int mine[kCount];
  if (fixed) {
    CUDA_CHECK(cudaMemcpy(mine, words.data(), sizeof mine, cudaMemcpyDefault));
  } else {
    std::memcpy(mine, words.data(), sizeof mine);  // @host_copies
  }
  if (mine[0] != 0) std::puts("not zero");
}
void set_first(void* data) { *static_cast<int*>(data) = 1; }  // @callback
void callback(bool fixed) {
  const DeviceBuffer<int> words(0, kCount);  // @callback
  PinnedBuffer<int> mine(kCount);
  CUDA_CHECK(cudaLaunchHostFunc(nullptr, set_first, fixed ? mine.data() : words.data()));
  synchronize();
}

// ---- memory of another GPU --------------------------------------------------------------------------
/// GPU 0 reads memory of GPU 1.
void read_from_peer(const DeviceBuffer<int>& words) {
  {
    const DeviceGuard guard(1);
    clear(words);
    synchronize();
  }
  const DeviceBuffer<int> sum(0, 1);
  const DeviceGuard guard(0);
  read_word<<<1, 1>>>(words.data(), sum.data());
  synchronize();
}
void peer_read(bool fixed) {
  const DeviceBuffer<int> words(1, kCount);  // @peer_read
  const DeviceGuard guard(0);
  if (fixed) CUDA_CHECK(cudaDeviceEnablePeerAccess(1, 0));
  read_from_peer(words);
}
void peer_disabled(bool fixed) {
  const DeviceBuffer<int> words(1, kCount);  // @peer_disabled
  const DeviceGuard guard(0);
  CUDA_CHECK(cudaDeviceEnablePeerAccess(1, 0));
  if (!fixed) CUDA_CHECK(cudaDeviceDisablePeerAccess(1));
  read_from_peer(words);
}
void peer_alone(bool fixed) {                // peer access has a direction
  const DeviceBuffer<int> words(1, kCount);  // @peer_alone
  const DeviceGuard guard(fixed ? 0 : 1);
  CUDA_CHECK(cudaDeviceEnablePeerAccess(fixed ? 1 : 0, 0));
  read_from_peer(words);
}

// ---- division by zero -------------------------------------------------------------------------------
__global__ void divide(int* words, bool fixed) {
  const int i = static_cast<int>(threadIdx.x);
  words[i] = 100 / (words[i] + i + fixed);  // @division
}
void division(bool fixed) { run(divide, 8, DeviceBuffer<int>(0, kCount), fixed); }
__global__ void wrap_around(int* words, bool fixed) {
  words[1] = 7 % (words[0] + fixed);  // @remainder
}
void remainder(bool fixed) { run(wrap_around, 1, DeviceBuffer<int>(0, kCount), fixed); }

// ---- every size -------------------------------------------------------------------------------------
/// Exit status of store<<<>>> with `threads` threads on an array of `size` words, in a process of its own.
int status_of(int size, int threads) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    setenv("PATH", "", 1);  // without addr2line, the slowest part of a report
    DeviceBuffer<int> words(0, static_cast<std::size_t>(size));
    store<<<1, static_cast<unsigned>(threads)>>>(words.data(), threads);
    _exit(cudaDeviceSynchronize() == cudaSuccess ? 0 : 2);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
/// Stores one element past arrays of 1 to 300 words, and counts the sizes whose exit status is as expected.
void every_size(bool fixed) {
  int found = 0;
  for (int size = 1; size <= 300; ++size)
    found += status_of(size, fixed ? size : size + 1) == (fixed ? 0 : 3);
  std::printf("%d of 300 sizes\n", found);
}

// clang-format off
const planted::Cases kCases = {
    {"one_past", one_past}, {"odd_size", odd_size}, {"pinned_by_kernel", pinned_by_kernel},
    {"pinned_by_host", pinned_by_host}, {"before", before}, {"wrapped", wrapped},
    {"far_behind", far_behind}, {"structure", structure}, {"atomic", atomic}, {"copied", copied},
    {"cleared", cleared}, {"copied_later", copied_later}, {"in_function", in_function}, {"freed", freed},
    {"pinned_freed", pinned_freed}, {"shared_index", shared_index}, {"shared_pointer", shared_pointer},
    {"shared_row", shared_row}, {"dynamic_too_small", dynamic_too_small},
    {"dynamic_missing", dynamic_missing}, {"dynamic_before", dynamic_before}, {"local_index", local_index},
    {"local_negative", local_negative}, {"local_member", local_member}, {"local_row", local_row},
    {"misaligned", misaligned}, {"misaligned_shared", misaligned_shared}, {"host_reads", host_reads},
    {"host_writes", host_writes}, {"host_copies", host_copies}, {"callback", callback},
    {"peer_read", peer_read}, {"peer_disabled", peer_disabled}, {"peer_alone", peer_alone},
    {"division", division}, {"remainder", remainder}, {"every_size", every_size}};
// clang-format on

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
