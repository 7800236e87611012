// The host backs only written pages of device memory; of a large grid only some blocks run.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/maps.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Growth of the host's memory use since construction, at most.
class Growth {
 public:
  Growth() : before_(resident()) {}
  std::size_t bytes() const { return resident() - std::min(before_, resident()); }

 private:
  static std::size_t resident() {
    std::size_t size = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
  std::size_t before_;
};

std::uint32_t word_at(const std::byte* memory) {
  return word(reinterpret_cast<const std::uint32_t*>(memory));
}

class LargeMemoryTest : public VirtualTest {
 protected:
  /// GPUs of 1 TiB.
  void use_large_machine(bool on_demand) {
    nlohmann::json machine;
    std::ifstream(VGPU_MACHINES_DIR "/small.json") >> machine;
    machine["gpu"]["memory_mib"] = 1 << 20;
    if (on_demand) machine["gpu"]["memory_on_demand"] = true;
    vgpu::use_machine(machine_file(machine.dump()));
  }
};

TEST_F(LargeMemoryTest, IsFullOfOnesUntilItIsWritten) {
  for (const std::size_t bytes : {1 * kMiB, 32 * kMiB, 32 * kMiB + 4, 70 * kMiB + 12345}) {
    auto* memory = device_room<unsigned char>(bytes);
    EXPECT_TRUE(words(memory, bytes) == std::vector<unsigned char>(bytes, 0xff)) << bytes << " bytes";
    require(cudaFree(memory));
  }
}

// Equal pages share one page of the host, invisibly to the program.
TEST_F(LargeMemoryTest, IsItsOwn) {
  std::byte *first = device_room<std::byte>(96 * kMiB), *second = device_room<std::byte>(96 * kMiB);
  require(cudaMemset(first + 8 * kMiB, 7, 4));
  EXPECT_EQ(word_at(first + 8 * kMiB), 0x07070707u);
  for (const std::size_t place : {0 * kMiB, 40 * kMiB, 72 * kMiB}) EXPECT_EQ(word_at(first + place), ~0u);
  for (const std::size_t place : {0 * kMiB, 8 * kMiB, 40 * kMiB}) EXPECT_EQ(word_at(second + place), ~0u);
}

TEST_F(LargeMemoryTest, TakesOfTheHostWhatIsWritten) {
  const Growth growth;
  std::byte* memory = device_room<std::byte>(900 * kMiB);
  require(cudaMemset(memory + 500 * kMiB, 0, kMiB));
  EXPECT_EQ(word_at(memory + 500 * kMiB), 0u);
  EXPECT_LT(growth.bytes(), 100 * kMiB);
}

TEST_F(LargeMemoryTest, MoreThanTheHostHasIsRefusedUnlessItIsThereOnDemand) {
  use_large_machine(false);
  std::byte* memory = nullptr;
  expect_failure(cudaMalloc(&memory, 900'000 * kMiB), cudaErrorMemoryAllocation, {"bytes requested"});
  vgpu::reset();
  use_large_machine(true);
  require(cudaMalloc(&memory, 900'000 * kMiB));
  std::byte* const end = memory + 900'000 * kMiB;
  require(cudaMemset(end - 4, 0, 4));
  EXPECT_EQ(word_at(end - 4), 0u);
  EXPECT_EQ(word_at(end - kMiB), ~0u);
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total - free, 900'000 * kMiB);
  expect_failure(cudaMalloc(&memory, 900'000 * kMiB), cudaErrorMemoryAllocation, {"bytes free"});
}

/// All of many threads wait at a barrier.
__global__ void meet_once(int* sum) {
  __syncthreads();
  atomicAdd(sum, int{1});
}

// Each stack has guard pages, and Linux limits a process to some 65,000 mappings.
constexpr int kUsualMaps = 65'530;

TEST_F(LargeMemoryTest, SoManyAllocationsAsThereAreMappings) {
  if (vgpu::map_limit() > kUsualMaps) GTEST_SKIP() << "this system gives a process more than usual";
  std::byte* memory = nullptr;
  std::vector<std::byte*> all;
  cudaError_t error = cudaSuccess;
  while (all.size() < 40'000 && (error = cudaMalloc(&memory, 16)) == cudaSuccess) all.push_back(memory);
  EXPECT_GE(all.size(), 4'000u);  // earlier tests' threads have stacks, too
  expect_failure(error, cudaErrorMemoryAllocation, {"so many allocations", "vm.max_map_count is "});
  expect_failure(cudaMallocHost(&memory, 16), cudaErrorMemoryAllocation, {"so many allocations"});
  // Everything else still works.
  int* sum = reinterpret_cast<int*>(all[0]);
  require(cudaMemset(sum, 0, sizeof(int)));
  vgpu::run_host_threads(8, [sum](int) {
    meet_once<<<2, 1024>>>(sum);
    require(cudaDeviceSynchronize());
  });
  EXPECT_EQ(word(sum), 8 * 2 * 1024);
  for (std::byte* one : all) require(cudaFree(one));
  require(cudaMalloc(&memory, 16));
}

/// Uses up all mappings; exits with 0 if memory can be freed nevertheless.
void free_without_mappings() {
  int* freed = device_words(1, 0);
  int* kept = device_words(1, 0);
  // Neighbouring pages differ in protection, so that each page is a mapping of its own.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPages = 100'000;
  auto* pages = static_cast<std::byte*>(
      mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::size_t at = 0;
  while (at < kPages && mprotect(pages + at * page, page, PROT_READ) == 0) at += 2;
  if (at >= kPages || cudaFree(freed) != cudaSuccess) _exit(1);
  munmap(pages, kPages * page);
  set<<<1, 1>>>(kept, 1);
  if (cudaDeviceSynchronize() != cudaSuccess) _exit(2);
  set<<<1, 1>>>(freed, 1);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress, {"inside freed memory"});
  _exit(testing::Test::HasFailure() ? 3 : 0);
}
TEST_F(LargeMemoryTest, IsFreedWithoutAMappingLeft) {
  if (vgpu::map_limit() > kUsualMaps) GTEST_SKIP() << "this system gives a process more than usual";
  EXPECT_EXIT(free_without_mappings(), testing::ExitedWithCode(0), "");
}

/// Counts the blocks that ran, and sums their indices.
__global__ void count_blocks(int* found) {
  atomicAdd(&found[0], int{1});
  atomicAdd(&found[1], static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)));
}

class BlocksTest : public VirtualTest {
 protected:
  /// The number of blocks of the grid that run, and the sum of their indices.
  static std::pair<int, int> run(dim3 grid) {
    int* found = device_words(2, 0);
    count_blocks<<<grid, 1>>>(found);
    require(cudaDeviceSynchronize());
    return {word(found), word(found + 1)};
  }
};

TEST_F(BlocksTest, OnlyThoseThatAreAskedForRun) {
  EXPECT_EQ(run(10), std::pair(10, 45));
  vgpu::run_blocks({3, 2});
  EXPECT_EQ(run(10), std::pair(2, 3 + 4));
  EXPECT_EQ(run({2, 3, 4}), std::pair(2, 3 + 4));
  EXPECT_EQ(run(4), std::pair(1, 3)) << "as far as the grid has them";
  EXPECT_EQ(run(3), std::pair(0, 0));
  vgpu::run_blocks({});
  EXPECT_EQ(run(10), std::pair(10, 45));
  vgpu::run_blocks({3, 2});
  vgpu::reset();
  EXPECT_EQ(run(10), std::pair(10, 45));
}

TEST_F(BlocksTest, OnlyTheyRunInARandomOrderToo) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    start_over(seed);
    vgpu::run_blocks({90, 5});
    EXPECT_EQ(run(1000), std::pair(5, 90 + 91 + 92 + 93 + 94));
    EXPECT_EQ(run(90), std::pair(0, 0));
  }
}

TEST_F(BlocksTest, AreTheLastOnesOfTheLargestGrid) {
  vgpu::run_blocks({0x7ffffffe, 10});
  EXPECT_EQ(run(0x7fffffff), std::pair(1, 0x7ffffffe));
}

// Waiting blocks resume in the order of their indices.
__global__ void meet(int* flags, int* found) {
  const int self = static_cast<int>(blockIdx.x % 2);
  atomicExch(&flags[self], int{1});
  while (atomicAdd(&flags[1 - self], int{0}) == 0) __nanosleep(100);
  atomicAdd(found, static_cast<int>(blockIdx.x));
}
TEST_F(BlocksTest, MayWaitForEachOther) {
  vgpu::run_blocks({50, 2});
  int* words = device_words(3, 0);
  meet<<<100, 1>>>(words, words + 2);
  require(cudaDeviceSynchronize());
  EXPECT_EQ(word(words + 2), 101);
}

}  // namespace
}  // namespace virtual_only
