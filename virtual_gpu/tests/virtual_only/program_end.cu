// How programs end: what was enqueued has run, and no status 0 after a report.
#include <sys/mman.h>

#include <cstdlib>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

/// Each test ends a process of its own.
class ProgramEndTest : public VirtualTest {
 protected:
  ProgramEndTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

const int* seen_at_the_end = nullptr;
/// Ends the process with what the word holds when static objects are destroyed.
struct Witness {
  ~Witness() {
    if (seen_at_the_end != nullptr) _exit(*seen_at_the_end);
  }
};

[[noreturn]] void wait_for_nothing() {
  int* word = nullptr;
  require(cudaMallocHost(&word, sizeof(int)));
  set<<<1, 1>>>(word, 7);
  static const Witness witness;
  seen_at_the_end = word;
  std::exit(0);
}
TEST_F(ProgramEndTest, NobodyWaitedForTheKernel) {
  EXPECT_EXIT(wait_for_nothing(), testing::ExitedWithCode(7), "^$");
}

[[noreturn]] void end_with_five() {
  set<<<1, 1>>>(device_words(1, 0), 7);
  (void)cudaSetDevice(99);  // a call that fails is the program's affair
  std::exit(5);
}
TEST_F(ProgramEndTest, StatusIsTheProgramsIfNothingIsWrong) {
  EXPECT_EXIT(end_with_five(), testing::ExitedWithCode(5), "^$");
}

[[noreturn]] void write_nowhere(bool asks) {
  set<int><<<1, 1>>>(nullptr, 1);
  if (asks) (void)cudaDeviceSynchronize();
  std::exit(0);
}
TEST_F(ProgramEndTest, FaultThatTheProgramDoesNotCareFor) {
  EXPECT_EXIT(write_nowhere(true), testing::ExitedWithCode(3), "^$");
  EXPECT_EXIT(write_nowhere(false), testing::ExitedWithCode(3),
              "^virtual GPUs: kernel .*set.* accessed memory that is not there: in no memory");
}

__global__ void await_word(int* word) {
  while (atomicAdd(word, 0) == 0) __nanosleep(100);
}
[[noreturn]] void await_nobody(bool synchronises) {
  await_word<<<1, 1>>>(device_words(1, 0));
  if (synchronises) (void)cudaDeviceSynchronize();
  std::exit(0);
}
TEST_F(ProgramEndTest, KernelThatWaitsForEver) {
  EXPECT_EXIT(await_nobody(true), testing::ExitedWithCode(3), "^virtual GPUs: deadlock: ");
  EXPECT_EXIT(await_nobody(false), testing::ExitedWithCode(3),
              "^virtual GPUs: main.* has returned or exit.* was called, and this still waits for the host.*\n"
              ".*kernel .*await_word.* 1 polling; 1 thread of block .* polls at .*; 0 more behind it\n$");
}

void free_registered_memory() {
  constexpr std::size_t kBytes = 1 << 20;
  int* to = device_words(1, 0);
  void* from = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(cudaHostRegister(from, kBytes, cudaHostRegisterDefault));
  (void)cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDefault);
  munmap(from, kBytes);
  (void)cudaDeviceSynchronize();
}
TEST_F(ProgramEndTest, RegisteredMemoryIsFreedUnderACopy) {
  EXPECT_EXIT(
      free_registered_memory(), testing::ExitedWithCode(3),
      "^virtual GPUs: memory is not there any more, inside registered host memory of 1048576 bytes.*\n"
      ".*under way: gpu0/stream0 .default.*: copy of 4 bytes from the host to GPU 0\n$");
}

}  // namespace
}  // namespace virtual_only
