// A word that another GPU has written must be read at system scope; a smaller scope is a fault that names
// reader and writer.
#include <cuda.h>

#include <cuda/atomic>
#include <string>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

template <cuda::thread_scope Scope>
using Word = cuda::atomic_ref<unsigned, Scope>;
constexpr auto kSystem = cuda::thread_scope_system, kDevice = cuda::thread_scope_device,
               kBlock = cuda::thread_scope_block;

/// GPU 0 holds a word that GPU 1 can access.
class ScopesTest : public VirtualTest {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    begin();
  }
  void begin() {
    vgpu::reset();
    require(cudaSetDevice(1));
    require(cudaDeviceEnablePeerAccess(0, 0));
    require(cudaSetDevice(0));
    word_ = device_words(1, 0u);
  }
  /// GPU 1 writes the word by `write(stream of GPU 1)`; then GPU 0's kernel reads it.
  template <class Write, class Kernel>
  cudaError_t read_after(const Write& write, Kernel kernel) {
    require(cudaSetDevice(1));
    const cudaStream_t stream = new_stream();
    write(stream);
    require(cudaStreamSynchronize(stream));
    require(cudaSetDevice(0));
    kernel<<<1, 1>>>(word_);
    return cudaDeviceSynchronize();
  }

  unsigned* word_ = nullptr;
};

template <cuda::thread_scope Scope, class T>
__global__ void await_word(T* word) {
  while (Word<Scope>(*word).load(cuda::memory_order_acquire) == 0) {
  }
}
template <cuda::thread_scope Scope, class T>
__global__ void take_word(T* word) {
  T seen = 1;
  Word<Scope>(*word).compare_exchange_strong(seen, 2);
}
template <cuda::thread_scope Scope, class T>
__global__ void add_to_word(T* word) {
  Word<Scope>(*word).fetch_add(1);
}
__global__ void store_word(unsigned int* word) { Word<kSystem>(*word).store(1, cuda::memory_order_release); }
__global__ void add_word(unsigned int* word) {
  Word<kSystem>(*word).fetch_add(1, cuda::memory_order_release);
}

TEST_F(ScopesTest, AWordOfAnotherGpusStreamIsReadAtSystemScope) {
  const auto write = [this](cudaStream_t stream) {
    ASSERT_EQ(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1, 0), CUDA_SUCCESS);
  };
  EXPECT_EQ(read_after(write, await_word<kSystem, unsigned>), cudaSuccess);
  begin();
  expect_failure(
      read_after(write, await_word<kDevice, unsigned>), cudaErrorLaunchFailure,
      {"await_word", "thread (0,0,0) of block (0,0,0) reads a word at device scope at scopes.cu:",
       "GPU 1 has written it", "inside a cudaMalloc of 4 bytes on GPU 0", "is read at system scope"});
  begin();
  expect_failure(read_after(write, await_word<kBlock, unsigned>), cudaErrorLaunchFailure,
                 {"at block scope at scopes.cu:"});
}

TEST_F(ScopesTest, AWordOfAnotherGpusKernelIsReadAtSystemScope) {
  const auto store = [this](cudaStream_t stream) { store_word<<<1, 1, 0, stream>>>(word_); };
  const auto add = [this](cudaStream_t stream) { add_word<<<1, 1, 0, stream>>>(word_); };
  EXPECT_EQ(read_after(store, await_word<kSystem, unsigned>), cudaSuccess);
  begin();
  expect_failure(read_after(store, await_word<kDevice, unsigned>), cudaErrorLaunchFailure,
                 {"at device scope at scopes.cu:"});
  begin();
  expect_failure(read_after(add, await_word<kDevice, unsigned>), cudaErrorLaunchFailure,
                 {"at device scope at scopes.cu:"});
}

TEST_F(ScopesTest, AWordThatAnotherGpuCopiedIsReadAtSystemScope) {
  unsigned* one = device_words(1, 1u);
  const auto copy = [&](cudaStream_t stream) {
    require(cudaMemcpyAsync(word_, one, sizeof *one, cudaMemcpyDefault, stream));
  };
  expect_failure(read_after(copy, await_word<kDevice, unsigned>), cudaErrorLaunchFailure,
                 {"at device scope at scopes.cu:"});
}

TEST_F(ScopesTest, UpdatesReadToo) {
  const auto store = [this](cudaStream_t stream) { store_word<<<1, 1, 0, stream>>>(word_); };
  expect_failure(read_after(store, take_word<kDevice, unsigned>), cudaErrorLaunchFailure,
                 {"take_word", "at device scope at scopes.cu:"});
  begin();
  expect_failure(read_after(store, add_to_word<kDevice, unsigned>), cudaErrorLaunchFailure,
                 {"add_to_word", "at device scope at scopes.cu:"});
  begin();
  EXPECT_EQ(read_after(store, add_to_word<kSystem, unsigned>), cudaSuccess);
}

TEST_F(ScopesTest, WhatTheOwnGpuWritesMayBeReadAtAnyScope) {
  const cudaStream_t own = new_stream();
  store_word<<<1, 1, 0, own>>>(word_);
  require(cudaStreamSynchronize(own));
  await_word<kDevice><<<1, 1, 0, own>>>(word_);
  EXPECT_EQ(cudaStreamSynchronize(own), cudaSuccess);
  // Also after it has overwritten another GPU's value.
  const auto write = [&](cudaStream_t stream) {
    store_word<<<1, 1, 0, stream>>>(word_);
    require(cudaStreamSynchronize(stream));
    require(cudaSetDevice(0));
    store_word<<<1, 1, 0, own>>>(word_);
    require(cudaStreamSynchronize(own));
  };
  EXPECT_EQ(read_after(write, await_word<kDevice, unsigned>), cudaSuccess);
}

TEST_F(ScopesTest, LargerCopiesAreData) {
  unsigned* words = device_words(4, 1u);
  unsigned* there = device_words(4, 0u);
  const auto copy = [&](cudaStream_t stream) {
    require(cudaMemcpyAsync(there, words, 4 * sizeof *words, cudaMemcpyDefault, stream));
  };
  word_ = there;
  EXPECT_EQ(read_after(copy, await_word<kDevice, unsigned>), cudaSuccess);
}

// ---- Two words alternately -------------------------------------------------------------------------------
/// Reads its word, and periodically a word that tells it to give up.
__global__ void await_or_give_up(unsigned int* word, unsigned int* given_up) {
  for (unsigned looks = 1; Word<kSystem>(*word).load(cuda::memory_order_acquire) == 0; ++looks) {
    if (looks % 256 == 0 && Word<kSystem>(*given_up).load(cuda::memory_order_acquire) != 0) return;
  }
}

TEST_F(ScopesTest, AWaitThatAlsoLooksAtAnotherWordIsAWait) {
  for (const bool give_up : {false, true}) {
    begin();
    unsigned* given_up = device_words(1, 0u);
    const cudaStream_t waiting = new_stream(), other = new_stream();
    await_or_give_up<<<1, 1, 0, waiting>>>(word_, given_up);
    store_word<<<1, 1, 0, other>>>(give_up ? given_up : word_);
    EXPECT_EQ(cudaStreamSynchronize(waiting), cudaSuccess);
  }
}

TEST_F(ScopesTest, AWaitOnTwoWordsWithoutEndIsADeadlock) {
  unsigned* given_up = device_words(1, 0u);
  await_or_give_up<<<1, 1>>>(word_, given_up);
  expect_parts(deadlock_of(cudaDeviceSynchronize), {"deadlock"});
}

// ---- Links without native atomics ------------------------------------------------------------------------
template <class T>
__global__ void count_up(T* word) {
  atomicAdd_system(word, 1);
}

TEST_F(ScopesTest, AReadModifyWriteOfAnotherGpusWordWantsNativeAtomics) {
  for (const auto kernel : {add_word, count_up<unsigned>}) {
    for (const bool native : {true, false}) {
      vgpu::reset();
      vgpu::use_machine(native ? "h100-nvlink" : "h100-pcie");
      int supported = -1;
      require(cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrNativeAtomicSupported, 1, 0));
      EXPECT_EQ(supported, native);
      require(cudaSetDevice(1));
      require(cudaDeviceEnablePeerAccess(0, 0));
      require(cudaSetDevice(0));
      unsigned* word = device_words(1, 0u);
      kernel<<<1, 1>>>(word);
      require(cudaDeviceSynchronize());
      require(cudaSetDevice(1));
      kernel<<<1, 1>>>(word);
      if (native) {
        require(cudaDeviceSynchronize());
      } else {
        expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                       {"reads and writes memory of GPU 0 in one access at scopes.cu:", "no native atomics",
                        "cudaDevP2PAttrNativeAtomicSupported is 0"});
      }
    }
  }
}

TEST_F(ScopesTest, AnAttributeOfALinkWantsTwoGpus) {
  int value = 0;
  expect_failure(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1),
                 cudaErrorInvalidDevice, {"not its own peer"});
}

}  // namespace
}  // namespace virtual_only
