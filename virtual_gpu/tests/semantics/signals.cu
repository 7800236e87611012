// Words that streams write and wait for (CUDA Driver API reference, "Stream Memory Operations").
#include <cuda.h>

#include "gpu_test.hpp"

namespace semantics {
namespace {

CUdeviceptr address(const unsigned* word) { return reinterpret_cast<CUdeviceptr>(word); }
void write_value(cudaStream_t stream, const unsigned* word, unsigned value) {
  ASSERT_EQ(cuStreamWriteValue32(stream, address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT), CUDA_SUCCESS);
}
void wait_value(cudaStream_t stream, const unsigned* word, unsigned value,
                unsigned flags = CU_STREAM_WAIT_VALUE_GEQ) {
  ASSERT_EQ(cuStreamWaitValue32(stream, address(word), value, flags), CUDA_SUCCESS);
}

__global__ void add_one(int* where) { *where += 1; }

TEST(Signals, WriteIsSeenAfterTheStreamIsDone) {
  const DeviceArray<unsigned> word(1, 0u);
  const Stream stream;
  write_value(stream, word.data(), 7);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(word.value(), 7u);
}

TEST(Signals, WaitHoldsBackItsOwnStreamOnly) {
  const DeviceArray<unsigned> word(1, 0u);
  const DeviceArray<int> held(1, 0), free(1, 0);
  const Stream waiting, other;
  wait_value(waiting, word.data(), 1);
  add_one<<<1, 1, 0, waiting>>>(held.data());
  add_one<<<1, 1, 0, other>>>(free.data());
  CUDA_OK(cudaStreamSynchronize(other));
  EXPECT_EQ(cudaStreamQuery(waiting), cudaErrorNotReady);
  write_value(other, word.data(), 1);
  CUDA_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQ(held.value(), 1);
  EXPECT_EQ(free.value(), 1);
}

TEST(Signals, WaitSeesWhatCameBeforeTheWrite) {
  const DeviceArray<unsigned> word(1, 0u);
  const DeviceArray<int> data(1, 0);
  const Stream first, second;
  wait_value(second, word.data(), 1);
  add_one<<<1, 1, 0, second>>>(data.data());
  add_one<<<1, 1, 0, first>>>(data.data());
  write_value(first, word.data(), 1);
  CUDA_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(data.value(), 2);
}

struct Comparison {
  unsigned flags, wanted, too_little, enough;
};
class SignalComparisons : public testing::TestWithParam<Comparison> {};

TEST_P(SignalComparisons, HoldAsDocumented) {
  const Comparison& c = GetParam();
  const DeviceArray<unsigned> word(1, c.too_little);
  const Stream waiting, writing;
  wait_value(waiting, word.data(), c.wanted, c.flags);
  write_value(writing, word.data(), c.too_little);
  CUDA_OK(cudaStreamSynchronize(writing));
  EXPECT_EQ(cudaStreamQuery(waiting), cudaErrorNotReady);
  write_value(writing, word.data(), c.enough);
  CUDA_OK(cudaStreamSynchronize(waiting));
}
INSTANTIATE_TEST_SUITE_P(Signals, SignalComparisons,
                         testing::Values(Comparison{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5},
                                         Comparison{CU_STREAM_WAIT_VALUE_GEQ, 5, 0, 900},
                                         // Cyclic: 2 comes 4 after 2^32 - 2, and 2^31 + 5 counts as before 5.
                                         Comparison{CU_STREAM_WAIT_VALUE_GEQ, 0xfffffffeu, 0xfffffff0u, 2},
                                         Comparison{CU_STREAM_WAIT_VALUE_GEQ, 5, 0x80000005u, 5},
                                         Comparison{CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5},
                                         Comparison{CU_STREAM_WAIT_VALUE_AND, 6, 9, 4},
                                         Comparison{CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0u, 0xf, 0x7}));

TEST(Signals, WordMayLieInPinnedMemoryAndBeWrittenByTheHost) {
  PinnedArray<unsigned> word(1, 0u);
  const DeviceArray<int> data(1, 0);
  const Stream stream;
  wait_value(stream, word.data(), 3);
  add_one<<<1, 1, 0, stream>>>(data.data());
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  __atomic_store_n(word.data(), 3u, __ATOMIC_RELEASE);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(data.value(), 1);
}

__global__ void release_word(unsigned int* word, unsigned int value) {
  cuda::atomic_ref<unsigned int, cuda::thread_scope_system>(*word).store(value, cuda::memory_order_release);
}

TEST(Signals, KernelMayWriteTheWord) {
  const DeviceArray<unsigned> word(1, 0u);
  const DeviceArray<int> data(1, 0);
  const Stream waiting, writing;
  wait_value(waiting, word.data(), 1);
  add_one<<<1, 1, 0, waiting>>>(data.data());
  add_one<<<1, 1, 0, writing>>>(data.data());
  release_word<<<1, 1, 0, writing>>>(word.data(), 1u);
  CUDA_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQ(data.value(), 2);
}

__global__ void await_word(unsigned int* word, unsigned int value) {
  const cuda::atomic_ref<unsigned int, cuda::thread_scope_system> flag(*word);
  while (flag.load(cuda::memory_order_acquire) < value) __nanosleep(100);
}

TEST(Signals, KernelMayWaitForAWrittenWord) {
  const DeviceArray<unsigned> word(1, 0u);
  const DeviceArray<int> data(1, 0);
  const Stream waiting, writing;
  await_word<<<1, 1, 0, waiting>>>(word.data(), 1u);
  add_one<<<1, 1, 0, waiting>>>(data.data());
  add_one<<<1, 1, 0, writing>>>(data.data());
  write_value(writing, word.data(), 1);
  CUDA_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQ(data.value(), 2);
}

/// Raises the other kernel's word and waits for its own, `rounds` times.
__global__ void take_turns(unsigned int* own, unsigned int* others, int* data, unsigned int rounds,
                           bool begins) {
  const cuda::atomic_ref<unsigned int, cuda::thread_scope_system> mine(*own), yours(*others);
  for (unsigned int round = 1; round <= rounds; ++round) {
    if (!begins || round > 1) {
      const unsigned int awaited = begins ? round - 1 : round;
      while (mine.load(cuda::memory_order_acquire) < awaited) {
      }
    }
    *data += 1;
    yours.store(round, cuda::memory_order_release);
  }
}

// Programming Guide, "Memory synchronization operations": release and acquire on one word order the other
// accesses of two kernels. Both kernels must be resident at the same time.
TEST(Signals, TwoKernelsMayWaitForEachOther) {
  const DeviceArray<unsigned> first(1, 0u), second(1, 0u);
  const DeviceArray<int> data(1, 0);
  const Stream ping, pong;
  take_turns<<<1, 1, 0, ping>>>(first.data(), second.data(), data.data(), 20u, true);
  take_turns<<<1, 1, 0, pong>>>(second.data(), first.data(), data.data(), 20u, false);
  CUDA_OK(cudaStreamSynchronize(ping));
  CUDA_OK(cudaStreamSynchronize(pong));
  EXPECT_EQ(data.value(), 40);
}

TEST(Signals, EpochsGrowOverManyCalls) {
  const DeviceArray<unsigned> there(1, 0u), back(1, 0u);
  const DeviceArray<int> data(1, 0);
  const Stream ping, pong;
  for (unsigned epoch = 1; epoch <= 100; ++epoch) {
    add_one<<<1, 1, 0, ping>>>(data.data());
    write_value(ping, there.data(), epoch);
    wait_value(pong, there.data(), epoch);
    add_one<<<1, 1, 0, pong>>>(data.data());
    write_value(pong, back.data(), epoch);
    wait_value(ping, back.data(), epoch);
  }
  CUDA_OK(cudaStreamSynchronize(ping));
  EXPECT_EQ(data.value(), 200);
}

TEST(Signals, UnalignedWordIsRefused) {
  const DeviceArray<unsigned> words(2, 0u);
  const Stream stream;
  EXPECT_EQ(cuStreamWriteValue32(stream, address(words.data()) + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32(stream, address(words.data()) + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  cudaGetLastError();
}

TEST(Signals, ErrorsHaveNames) {
  const char* text = nullptr;
  ASSERT_EQ(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_INVALID_VALUE");
  ASSERT_EQ(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "invalid argument");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace semantics
