// Blocks and threads: shapes, barriers, shared memory. Guide, "Thread Hierarchy", "Synchronization Functions"
// and "Shared Memory".
#include <cstdint>
#include <numeric>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using ThreadsTest = GpuTest;

struct LaunchShape {
  dim3 grid, block;
};
std::size_t volume(const dim3& d) { return std::size_t{d.x} * d.y * d.z; }

/// One record per thread, at its index in the Guide's order: x fastest, blocks before threads.
__global__ void record_indices(unsigned int* out) {
  const unsigned int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned int threads = blockDim.x * blockDim.y * blockDim.z;
  unsigned int* mine = out + (block * threads + thread) * 4;
  atomicAdd(mine, 1u);
  mine[1] = blockIdx.x * 10000 + blockIdx.y * 100 + blockIdx.z;
  mine[2] = threadIdx.x * 10000 + threadIdx.y * 100 + threadIdx.z;
  mine[3] = gridDim.x * 10000 + gridDim.y * 100 + gridDim.z + blockDim.x * 7 + blockDim.y * 3 + blockDim.z;
}

class ShapeTest : public GpuTest, public testing::WithParamInterface<LaunchShape> {};

TEST_P(ShapeTest, EveryThreadRunsOnceWithItsOwnIndices) {
  const auto [grid, block] = GetParam();
  const DeviceArray<unsigned int> out(volume(grid) * volume(block) * 4, 0);
  record_indices<<<grid, block>>>(out.data());
  CUDA_OK(cudaGetLastError());
  const std::vector<unsigned int> seen = out.values();
  const unsigned int sizes = grid.x * 10000 + grid.y * 100 + grid.z + block.x * 7 + block.y * 3 + block.z;
  auto next = seen.begin();
  for (unsigned int b = 0; b < volume(grid); ++b) {
    const unsigned int in_grid = b % grid.x * 10000 + b / grid.x % grid.y * 100 + b / grid.x / grid.y;
    for (unsigned int t = 0; t < volume(block); ++t, next += 4) {
      const unsigned int in_block = t % block.x * 10000 + t / block.x % block.y * 100 + t / block.x / block.y;
      ASSERT_EQ(std::vector<unsigned int>(next, next + 4),
                (std::vector<unsigned int>{1, in_grid, in_block, sizes}))
          << "block " << b << ", thread " << t;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, ShapeTest,
                         testing::Values(LaunchShape{1, 1}, LaunchShape{7, 33}, LaunchShape{3, 1024},
                                         LaunchShape{{3, 5}, {4, 7}}, LaunchShape{{2, 3, 4}, {5, 3, 2}},
                                         LaunchShape{{1, 1, 9}, {1, 1, 64}}, LaunchShape{{1, 70}, {16, 16}}));

/// c = a + b for a matrix whose sizes are no multiples of the block's.
__global__ void add_matrices(const int* a, const int* b, int* c, int rows, int columns) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (row < rows && column < columns)
    c[row * columns + column] = a[row * columns + column] + b[row * columns + column];
}

TEST_F(ThreadsTest, UnevenEndsOfAMatrix) {
  constexpr int kRows = 37, kColumns = 53;
  std::vector<int> values(kRows * kColumns);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> a(values), b(values), c(values.size() + 100, -1);
  add_matrices<<<dim3((kColumns + 15) / 16, (kRows + 7) / 8), dim3(16, 8)>>>(a.data(), b.data(), c.data(),
                                                                             kRows, kColumns);
  const std::vector<int> result = c.values();
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], 2 * values[i]) << i;
  for (std::size_t i = values.size(); i < result.size(); ++i) ASSERT_EQ(result[i], -1) << "behind the end";
}

/// Offsets above 2^32, which need 64-bit index arithmetic.
__global__ void wide_offsets(long long* out, int columns) {
  const long long row = static_cast<long long>(blockIdx.x) * 50000 + threadIdx.x;
  out[blockIdx.x * blockDim.x + threadIdx.x] = row * columns + 1;
}

TEST_F(ThreadsTest, OffsetsBeyond32Bits) {
  const DeviceArray<long long> out(6, 0);
  wide_offsets<<<3, 2>>>(out.data(), 100003);
  EXPECT_EQ(out.values(),
            (std::vector<long long>{1, 100004, 5000150001, 5000250004, 10000300001, 10000400004}));
}

template <class T>
__device__ T* shared_of_a_function() {
  __shared__ T values[64];
  return values;
}

/// Reverses each block's part in static, dynamic and a device function's shared memory, in this order.
template <class T, int kThreads>
__global__ void reverse_three_times(T* data) {
  __shared__ T fixed[kThreads];
  extern __shared__ unsigned char dynamic[];
  T* words = reinterpret_cast<T*>(dynamic);
  T* mine = data + blockIdx.x * kThreads + threadIdx.x;
  const int opposite = kThreads - 1 - threadIdx.x;
  fixed[threadIdx.x] = *mine;
  __syncthreads();
  words[threadIdx.x] = fixed[opposite] + 1;
  __syncthreads();
  shared_of_a_function<T>()[threadIdx.x] = words[opposite] + 1;
  __syncthreads();
  *mine = shared_of_a_function<T>()[opposite] + 1;
}

TEST_F(ThreadsTest, StaticDynamicAndFunctionsSharedMemory) {
  constexpr int kThreads = 48;
  std::vector<int> values(3 * kThreads), expected(values.size());
  std::iota(values.begin(), values.end(), 0);
  for (int i = 0; i < 3 * kThreads; ++i) {
    expected[i] = i / kThreads * kThreads + (kThreads - 1 - i % kThreads) + 3;
  }
  const DeviceArray<int> data(values);
  reverse_three_times<int, kThreads><<<3, kThreads, kThreads * sizeof(int)>>>(data.data());
  CUDA_OK(cudaGetLastError());
  EXPECT_EQ(data.values(), expected);
}

struct alignas(128) Wide {
  double low, high;
};
/// Shared variables of several kinds must not overlap, and each must be aligned.
__global__ void many_declarations(int* out) {
  __shared__ char byte;
  __shared__ double wide[3], *pointer;
  __shared__ int matrix[4][5];
  __shared__ Wide aligned;
  __shared__ short odd[7];
  if (threadIdx.x == 0) {
    byte = 1;
    for (int i = 0; i < 3; ++i) wide[i] = 0.5 * i;
    pointer = &wide[2];
    for (int i = 0; i < 20; ++i) matrix[i / 5][i % 5] = i;
    aligned = {2.0, 3.0};
    for (int i = 0; i < 7; ++i) odd[i] = static_cast<short>(-i);
  }
  __syncthreads();
  if (threadIdx.x == 1) {
    const auto misaligned =
        reinterpret_cast<std::uintptr_t>(&aligned) % 128 + reinterpret_cast<std::uintptr_t>(wide) % 8;
    out[0] = byte + odd[6] == -5;
    out[1] = *pointer == 1.0 && wide[1] == 0.5;
    out[2] = matrix[3][4] + matrix[0][4] == 23;
    out[3] = aligned.low == 2.0 && aligned.high == 3.0;
    out[4] = misaligned == 0;
    out[5] = sizeof(matrix) == 20 * sizeof(int) && sizeof(wide) == 24;
  }
}

TEST_F(ThreadsTest, ManySharedDeclarations) {
  const DeviceArray<int> out(6, -1);
  many_declarations<<<1, 32>>>(out.data());
  EXPECT_EQ(out.values(), std::vector<int>(6, 1));
}

/// Each block counts alone, because shared memory is private to a block.
__global__ void count_threads_of_the_block(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count + static_cast<int>(blockIdx.x) * 1000;
}

TEST_F(ThreadsTest, SharedMemoryBelongsToOneBlock) {
  constexpr int kBlocks = 40;
  const DeviceArray<int> out(kBlocks, 0);
  count_threads_of_the_block<<<kBlocks, 96>>>(out.data());
  const std::vector<int> values = out.values();
  for (int i = 0; i < kBlocks; ++i) EXPECT_EQ(values[i], 96 + 1000 * i);
}

/// A sum over the block by halving, with a barrier in the loop.
template <class T, int kThreads>
__global__ void sum_by_halving(const T* in, T* out) {
  __shared__ T partial[kThreads];
  partial[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  for (unsigned int stride = kThreads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

TEST_F(ThreadsTest, BarriersInALoop) {
  std::vector<long long> values(2 * 1024);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<long long> in(values), out(2, 0);
  sum_by_halving<long long, 1024><<<2, 1024>>>(in.data(), out.data());
  EXPECT_EQ(out.values(), (std::vector<long long>{523776, 1572352}));
}

/// Locals keep their values across barriers. In each round, every thread adds its right neighbour's number.
__global__ void add_neighbours(int* out, int rounds) {
  __shared__ int exchange[2][128];
  int local[3] = {static_cast<int>(threadIdx.x), 0, 5};
  for (int round = 0; round < rounds; ++round) {
    exchange[round % 2][threadIdx.x] = local[0];
    __syncthreads();
    local[1] += exchange[round % 2][(threadIdx.x + 1) % blockDim.x];
    local[0] += 1;
  }
  out[threadIdx.x] = local[1] * 10 + local[2];
}

TEST_F(ThreadsTest, LocalsSurviveBarriers) {
  const DeviceArray<int> out(100, 0);
  add_neighbours<<<1, 100>>>(out.data(), 50);
  const std::vector<int> values = out.values();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], (50 * ((i + 1) % 100) + 49 * 50 / 2) * 10 + 5) << i;
}

/// Guide: a barrier waits for all threads of the block that have not exited.
__global__ void barrier_after_exits(int* out, unsigned int stay) {
  __shared__ int numbers[256];
  if (threadIdx.x >= stay) return;
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  __syncthreads();
  out[threadIdx.x] = numbers[stay - 1 - threadIdx.x];
}

TEST_F(ThreadsTest, BarrierDoesNotWaitForThreadsThatHaveEnded) {
  for (const int stay : {1, 31, 32, 33, 100, 256}) {
    const DeviceArray<int> out(256, 0);
    barrier_after_exits<<<1, 256>>>(out.data(), stay);
    const std::vector<int> values = out.values();
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(values[i], i < stay ? stay - i : 0) << stay << " stay, thread " << i;
  }
}

/// Predicates may be any int, not only 0 and 1; two consecutive calls must not mix.
__global__ void vote(int* out) {
  const int x = static_cast<int>(threadIdx.x);
  const int multiples = __syncthreads_count(x % 3 == 0 ? 6 : 0);
  const int odd = __syncthreads_count(x & 1);
  const int all = __syncthreads_and(x + 1) != 0;
  const int not_all = __syncthreads_and(x - 5) != 0;
  const int some = __syncthreads_or(x == 70 ? 4 : 0) != 0;
  const int none = __syncthreads_or(x > 1000) != 0;
  int* mine = out + x * 6;
  mine[0] = multiples, mine[1] = odd, mine[2] = all, mine[3] = not_all, mine[4] = some, mine[5] = none;
}

TEST_F(ThreadsTest, BarriersThatVote) {
  constexpr int kThreads = 100;
  const DeviceArray<int> out(kThreads * 6, -1);
  vote<<<1, kThreads>>>(out.data());
  const std::vector<int> values = out.values();
  for (int i = 0; i < kThreads; ++i) {
    ASSERT_EQ(std::vector<int>(values.begin() + i * 6, values.begin() + i * 6 + 6),
              (std::vector<int>{34, 50, 1, 0, 1, 0}))
        << "thread " << i;
  }
}

}  // namespace
}  // namespace semantics
