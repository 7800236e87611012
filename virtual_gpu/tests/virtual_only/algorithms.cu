// CUB on virtual GPUs beyond its documentation: rejected calls, results of wrong programs, the model.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/cub.cuh>
#include <random>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

constexpr int kCount = 1000;

/// A temporary buffer, and buffers of kCount items.
class AlgorithmsTest : public VirtualTest {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    in = device_words(kCount, 1);
    out = device_words(kCount, 7);
    storage = device_room<char>(bytes);
  }
  /// The first sums of `value`.
  static std::vector<int> multiples(int value) {
    std::vector<int> values;
    for (int i = 1; i <= kCount; ++i) values.push_back(i * value);
    return values;
  }
  cudaError_t scan(const int* from, int* to, cudaStream_t stream = nullptr) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, from, to, kCount, stream);
  }
  std::size_t bytes = 8192;
  void* storage = nullptr;
  int *in = nullptr, *out = nullptr;
};

// ---- rejected calls -------------------------------------------------------------------------------------

TEST_F(AlgorithmsTest, WrongSizes) {
  expect_failure(cub::DeviceScan::InclusiveSum(storage, bytes, in, out, -3), cudaErrorInvalidValue,
                 {"cub::DeviceScan::InclusiveSum: num_items is -3"});
  std::size_t little = 255;
  expect_failure(cub::DeviceScan::InclusiveSum(storage, little, in, out, kCount), cudaErrorInvalidValue,
                 {"255 bytes of temporary storage, it needs 512"});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // only CUB returns the error
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(words(out, kCount), std::vector<int>(kCount, 7));
}

TEST_F(AlgorithmsTest, WrongBits) {
  for (const auto& [begin, end] : {std::pair{-1, 8}, {0, 33}, {9, 8}}) {
    expect_failure(cub::DeviceRadixSort::SortKeys(storage, bytes, in, out, kCount, begin, end),
                   cudaErrorInvalidValue, {"cub::DeviceRadixSort::SortKeys: begin_bit and end_bit"});
  }
}

TEST_F(AlgorithmsTest, ASortIsNotInPlace) {
  expect_failure(cub::DeviceRadixSort::SortKeys(storage, bytes, in, in + kCount / 2, kCount),
                 cudaErrorInvalidValue, {"the inputs overlap the outputs"});
}

TEST_F(AlgorithmsTest, AStreamOfAnotherGpu) {
  const cudaStream_t stream = new_stream();
  require(cudaSetDevice(1));
  expect_failure(scan(in, out, stream), cudaErrorInvalidResourceHandle, {"GPU 1", "gpu0/stream1"});
}

TEST_F(AlgorithmsTest, AFreedStream) {
  const cudaStream_t stream = new_stream();
  require(cudaStreamDestroy(stream));
  expect_failure(scan(in, out, stream), cudaErrorInvalidResourceHandle, {"this stream does not exist"});
}

TEST_F(AlgorithmsTest, InputsThatEndTooEarly) {
  CUDA_OK(scan(in + 100, out));
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"cub::DeviceScan::InclusiveSum of 1000 items in gpu0/stream0 (default): d_in has ",
                  "beyond its memory"});
}

TEST_F(AlgorithmsTest, OutputsOnTheHost) {
  std::vector<int> host(kCount);
  CUDA_OK(scan(in, host.data()));
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress, {"InclusiveSum of 1000", "d_out lies"});
}

TEST_F(AlgorithmsTest, MemoryOfAPeerWithoutAccess) {
  const int* other = on_gpu(1, [] { return device_words(kCount, 1); });
  CUDA_OK(scan(other, out));
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"d_in lies on GPU 1, to which GPU 0 has no access"});
}

TEST_F(AlgorithmsTest, MemoryOfAPeerWithAccess) {
  const int* other = on_gpu(1, [] { return device_words(kCount, 2); });
  require(cudaDeviceEnablePeerAccess(1, 0));
  CUDA_OK(scan(other, out));
  EXPECT_EQ(words(out, kCount), multiples(2));
}

TEST_F(AlgorithmsTest, TemporaryStorageOnTheHost) {
  std::vector<char> host(bytes);
  CUDA_OK(cub::DeviceScan::InclusiveSum(host.data(), bytes, in, out, kCount));
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress, {"d_temp_storage lies"});
}

// Its owner does not wait for other GPUs' work (api/memory.cpp).
TEST_F(AlgorithmsTest, FreeUnderAPendingAlgorithmIsRefused) {
  for (int argument = 0; argument < 3; ++argument) {
    vgpu::reset();
    int* memory[3] = {device_words(kCount, 1), device_words(kCount, 1), device_words(2048, 1)};
    memory[argument] = on_gpu(1, [] { return device_words(2048, 1); });
    require(cudaDeviceEnablePeerAccess(1, 0));
    CUDA_OK(cub::DeviceScan::InclusiveSum(memory[2], bytes, memory[0], memory[1], kCount));
    require(cudaSetDevice(1));
    expect_failure(cudaFree(memory[argument]), cudaErrorIllegalAddress,
                   {"freed under a pending operation", "cub::DeviceScan::InclusiveSum of 1000 items"});
  }
}

// ---- missing waits ---------------------------------------------------------------------------------------

/// Two streams in time order. A scan runs from 2 to more than 4 us; the other stream's kernel begins at 3 us.
class UnorderedAlgorithmsTest : public AlgorithmsTest {
 protected:
  void SetUp() override {
    AlgorithmsTest::SetUp();
    first = new_stream();
    second = new_stream();
    other = device_words(300'000);
    CUDA_OK(scan(in, out, first));
  }
  std::vector<int> result() {
    require(cudaDeviceSynchronize());
    return words(out, kCount);
  }
  cudaStream_t first = nullptr, second = nullptr;
  int* other = nullptr;
};

TEST_F(UnorderedAlgorithmsTest, ResultsAreNotThereBeforeTheEnd) {
  int* early = pinned_room(kCount);
  require(cudaMemcpyAsync(early, out, kCount * sizeof(int), cudaMemcpyDeviceToHost, second));
  EXPECT_EQ(result(), multiples(1));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(early[i], 7) << i;
}

TEST_F(UnorderedAlgorithmsTest, InputsThatChangeMeanwhileSpoilTheResult) {
  require(cudaMemcpyAsync(other, other + 150'000, 600'000, cudaMemcpyDeviceToDevice, second));  // 3 us
  require(cudaMemsetAsync(in, 0, kCount * sizeof(int), second));
  std::vector<int> expected = multiples(1);
  std::fill(expected.begin() + kCount / 2, expected.end(), kCount / 2);
  EXPECT_EQ(result(), expected);
}

TEST_F(UnorderedAlgorithmsTest, SharedTemporaryStorageSpoilsTheResult) {
  CUDA_OK(scan(in, other, second));
  EXPECT_EQ(result(), std::vector<int>(kCount, -1));
  EXPECT_EQ(words(other, kCount), multiples(1));
}

// ---- sorts of all types, in random schedules ------------------------------------------------------------

template <class Key>
void sort_at_random(unsigned int seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> keys;
  for (int i = 0; i < kCount; ++i) keys.push_back(static_cast<Key>(random()));
  Key *in = device_room<Key>(kCount), *out = device_room<Key>(kCount);
  std::size_t bytes = 0;
  require(cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, kCount));
  void* storage = device_room<char>(bytes);
  require(cudaMemcpy(in, keys.data(), kCount * sizeof(Key), cudaMemcpyHostToDevice));
  require(cub::DeviceRadixSort::SortKeys(storage, bytes, in, out, kCount));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(words(out, kCount), keys);
}

TEST_F(VirtualTest, IntegersOfAllTypesAreSorted) {
  for (unsigned int seed = 1; seed <= 5; ++seed) {
    start_over(seed);
    sort_at_random<signed char>(seed);
    sort_at_random<unsigned char>(seed);
    sort_at_random<short>(seed);
    sort_at_random<unsigned short>(seed);
    sort_at_random<int>(seed);
    sort_at_random<unsigned int>(seed);
    sort_at_random<long long>(seed);
    sort_at_random<unsigned long long>(seed);
  }
}

// ---- the model ------------------------------------------------------------------------------------------

TEST_F(AlgorithmsTest, TakesTheTimeOfItsBytesAndLaunches) {
  constexpr int kMany = 1'000'000;
  int *from = device_words(kMany), *to = device_room(kMany);
  std::size_t needed = 0;
  require(cub::DeviceRadixSort::SortKeys(nullptr, needed, from, to, kMany));
  void* room = device_room<char>(needed);
  const cudaStream_t stream = new_stream();
  // 8 MB at 400 GB/s and two launches of 2 us.
  EXPECT_NEAR(
      elapsed(stream, [&] { CUDA_OK(cub::DeviceScan::InclusiveSum(room, needed, from, to, kMany, stream)); }),
      0.024, 0.001);
  // 4 MB and 4 passes of 8 MB each, and six launches; with 8 bits, one pass and three launches.
  EXPECT_NEAR(
      elapsed(stream,
              [&] { CUDA_OK(cub::DeviceRadixSort::SortKeys(room, needed, from, to, kMany, 0, 32, stream)); }),
      0.102, 0.001);
  EXPECT_NEAR(
      elapsed(stream,
              [&] { CUDA_OK(cub::DeviceRadixSort::SortKeys(room, needed, from, to, kMany, 0, 8, stream)); }),
      0.036, 0.001);
}

TEST_F(AlgorithmsTest, OccupiesMultiprocessors) {
  constexpr int kMany = 1'000'000;
  int *from = device_words(kMany), *to = device_room(kMany), *other = device_room(kMany);
  storage = device_room<char>(2 * bytes);
  const cudaStream_t first = new_stream(), second = new_stream();
  const float both = elapsed(first, [&] {
    CUDA_OK(cub::DeviceScan::InclusiveSum(storage, bytes, from, to, kMany, first));
    CUDA_OK(cub::DeviceScan::InclusiveSum(static_cast<char*>(storage) + bytes, bytes, from, other, kMany,
                                          second));
    order(first, second);
  });
  EXPECT_NEAR(both, 0.046, 0.002) << "both share the memory's rate";
}

}  // namespace
}  // namespace virtual_only
