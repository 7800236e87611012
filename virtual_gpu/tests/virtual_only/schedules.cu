// Schedules: a seed determines the order of everything that CUDA leaves open, reproducibly.
#include <set>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using SchedulesTest = VirtualTest;
constexpr int kSeeds = 20;

__global__ void add_block_sums(const int* in, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
/// Appends a digit without synchronisation: shows the order of the streams.
__global__ void append(int* where, int digit) { *where = *where * 10 + digit; }
/// Records the order in which threads of a block, and blocks, ran.
__global__ void queue_up(int* next, int* order) {
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

struct Outcome {
  std::uint64_t hash;
  std::vector<int> results;
  bool operator==(const Outcome&) const = default;
};

/// The program's results on a fresh machine (seed 0: time order), and the schedule's hash.
template <class Program>
Outcome run(std::uint64_t seed, Program program) {
  start_over(seed);
  std::vector<int> results = program();
  require(cudaDeviceSynchronize());
  return {vgpu::schedule_hash(), results};
}

/// Sums on two GPUs with three streams each, joined by events: the result is the same in any schedule.
std::vector<int> ordered_program() {
  std::vector<int> results;
  for (int device = 0; device < 2; ++device) {
    require(cudaSetDevice(device));
    int* in = device_words(128, device + 1);
    int* sum = device_words(1, 0);
    const cudaStream_t last = new_stream();
    for (int i = 0; i < 2; ++i) {
      const cudaStream_t stream = new_stream();
      add_block_sums<<<4, 32, 0, stream>>>(in, sum);
      order(last, stream);
    }
    append<<<1, 1, 0, last>>>(sum, 7);
    require(cudaStreamSynchronize(last));
    results.push_back(word(sum));
  }
  return results;
}

/// The same without the joining events: a program with a race.
std::vector<int> racy_program() {
  int* digits = device_words(1, 0);
  for (int digit = 1; digit <= 4; ++digit) append<<<1, 1, 0, new_stream()>>>(digits, digit);
  require(cudaDeviceSynchronize());
  return {word(digits)};
}

std::vector<int> queue_program() {
  int* next = device_words(1, 0);
  int* order = device_words(12, 0);
  queue_up<<<3, 4>>>(next, order);
  return words(order, 12);
}

TEST_F(SchedulesTest, TheSameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    for (const auto program : {ordered_program, racy_program, queue_program}) {
      EXPECT_EQ(run(seed, program), run(seed, program)) << "seed " << seed;
    }
  }
}

TEST_F(SchedulesTest, OrderedProgramIsRightInEverySchedule) {
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    EXPECT_EQ(run(seed, ordered_program).results, (std::vector<int>{2567, 5127})) << "seed " << seed;
  }
}

TEST_F(SchedulesTest, SeedsGiveDifferentSchedules) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) hashes.insert(run(seed, ordered_program).hash);
  EXPECT_GE(hashes.size(), 15u) << "of " << kSeeds;
}

TEST_F(SchedulesTest, SeedsShowRaces) {
  EXPECT_EQ(run(0, racy_program).results, std::vector<int>{1234}) << "in time order it looks right";
  std::set<std::vector<int>> results;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) results.insert(run(seed, racy_program).results);
  EXPECT_GE(results.size(), 5u);
}

TEST_F(SchedulesTest, SeedsReorderBlocksAndThreads) {
  std::set<int> first_blocks, first_threads;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const int first = run(seed, queue_program).results.front();
    first_blocks.insert(first / 4);
    first_threads.insert(first % 4);
  }
  EXPECT_EQ(first_blocks.size(), 3u);
  EXPECT_EQ(first_threads.size(), 4u);
}

TEST_F(SchedulesTest, SettingsAreChosenBeforeTheFirstCall) {
  EXPECT_EQ(vgpu::schedule_hash(), 0u) << "nothing has happened yet";
  require(cudaSetDevice(1));
  EXPECT_THROW(vgpu::use_schedule(1), std::logic_error);
  EXPECT_THROW(vgpu::use_machine("small"), std::logic_error);
}

// reset() restores the machine and all settings as before the first call.
TEST_F(SchedulesTest, ResetForgetsEverything) {
  const std::uint64_t in_time_order = run(0, racy_program).hash;
  run(3, racy_program);
  require(cudaSetDevice(2));
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  vgpu::reset();
  EXPECT_EQ(vgpu::schedule_hash(), 0u);
  EXPECT_EQ(vgpu::last_error_detail(), "");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  int device = -1;
  require(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, total);
  EXPECT_LT(vgpu::host_time_ms(), 0.01);
  EXPECT_EQ(run(0, racy_program).hash, in_time_order) << "the seed is forgotten too";
}

}  // namespace
}  // namespace virtual_only
