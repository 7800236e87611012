// Copies and fills: when their bytes are read, when calls return, pitches. API, "API synchronization
// behavior" and "Memory Management".
#include <numeric>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using CopiesTest = GpuTest;
using CopiesOfTwoGpusTest = TwoGpusTest;

std::vector<int> numbers(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

// Page-locked memory is not staged: the copy reads it when the stream reaches the copy.
TEST_F(CopiesTest, PinnedSourceIsReadWhenTheCopyRuns) {
  PinnedArray<int> source(1, 1);
  const DeviceArray<int> x(1, 0);
  const Stream stream;
  Gate gate(stream);
  CUDA_OK(cudaMemcpyAsync(x.data(), source.data(), sizeof(int), cudaMemcpyHostToDevice, stream));
  source[0] = 2;
  gate.drain(stream);
  EXPECT_EQ(x.value(), 2);
}

TEST_F(CopiesTest, PinnedDestinationIsWrittenWhenTheCopyRuns) {
  PinnedArray<int> destination(1, 7);
  const DeviceArray<int> x(1, 1);
  const Stream stream;
  Gate gate(stream);
  CUDA_OK(cudaMemcpyAsync(destination.data(), x.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(*static_cast<volatile int*>(destination.data()), 7) << "the call did not wait";
  gate.drain(stream);
  EXPECT_EQ(destination[0], 1);
}

class CopySizeTest : public GpuTest, public testing::WithParamInterface<int> {};

// "The function will return once the pageable buffer has been copied to the staging memory".
TEST_P(CopySizeTest, PageableSourceMayBeOverwrittenAfterASynchronousCopy) {
  std::vector<int> source = numbers(GetParam());
  const std::vector<int> expected = source;
  const DeviceArray<int> x(source.size(), 0);
  CUDA_OK(cudaMemcpy(x.data(), source.data(), x.bytes(), cudaMemcpyHostToDevice));
  std::fill(source.begin(), source.end(), -1);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.values(), expected);
}

TEST_P(CopySizeTest, ThereAndBackAsynchronously) {
  const int count = GetParam();
  const std::vector<int> expected = numbers(count);
  PinnedArray<int> host(2 * count, 0);
  std::copy(expected.begin(), expected.end(), host.data());
  const DeviceArray<int> first(count, 0), second(count, 0);
  const Stream stream;
  CUDA_OK(cudaMemcpyAsync(first.data(), host.data(), first.bytes(), cudaMemcpyHostToDevice, stream));
  CUDA_OK(cudaMemcpyAsync(second.data(), first.data(), first.bytes(), cudaMemcpyDeviceToDevice, stream));
  CUDA_OK(cudaMemcpyAsync(host.data() + count, second.data(), first.bytes(), cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), host.data() + count));
}

// After a synchronisation, pageable memory holds the result of an asynchronous copy, whenever the bytes were
// written.
TEST_P(CopySizeTest, ToPageableMemoryAsynchronously) {
  const std::vector<int> expected = numbers(GetParam());
  const DeviceArray<int> x(expected);
  std::vector<int> result(expected.size(), 0);
  const Stream stream;
  CUDA_OK(cudaMemcpyAsync(result.data(), x.data(), x.bytes(), cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result, expected);
}
INSTANTIATE_TEST_SUITE_P(Ints, CopySizeTest, testing::Values(1, 1000, 300000));

TEST_F(CopiesTest, SynchronousCopyToThePinnedHostReturnsWhenItIsDone) {
  PinnedArray<int> result(1, 0);
  const DeviceArray<int> x(1, 0);
  set_late<<<1, 1>>>(x.data(), 1);
  CUDA_OK(cudaMemcpy(result.data(), x.data(), sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQ(result[0], 1);
}

TEST_F(CopiesTest, SynchronousCopyFromThePinnedHostReturnsWhenItIsDone) {
  PinnedArray<int> source(1, 1);
  const DeviceArray<int> x(1, 0);
  set_late<<<1, 1>>>(x.data(), 9);
  CUDA_OK(cudaMemcpy(x.data(), source.data(), sizeof(int), cudaMemcpyHostToDevice));
  source[0] = 2;
  EXPECT_EQ(x.value(), 1);
}

// "For transfers from any host memory to any host memory, the function is fully synchronous."
TEST_F(CopiesTest, CopiesWithinTheHostAreSynchronous) {
  PinnedArray<int> pinned(2, 3);
  std::vector<int> pageable(2, 0);
  const Stream stream;
  CUDA_OK(cudaMemcpyAsync(pageable.data(), pinned.data(), pinned.bytes(), cudaMemcpyHostToHost, stream));
  EXPECT_EQ(pageable, std::vector<int>(2, 3));
  pageable = {4, 5};
  CUDA_OK(cudaMemcpy(pinned.data(), pageable.data(), pinned.bytes(), cudaMemcpyDefault));
  EXPECT_EQ(pinned[0], 4);
  EXPECT_EQ(pinned[1], 5);
}

// API, cudaMemcpyDefault: the kind of copy is inferred from the pointers.
TEST_F(CopiesTest, DefaultKindIsInferred) {
  int source = 5, result = 0;
  const DeviceArray<int> x(1, 0), y(1, 0);
  CUDA_OK(cudaMemcpy(x.data(), &source, sizeof(int), cudaMemcpyDefault));
  CUDA_OK(cudaMemcpy(y.data(), x.data(), sizeof(int), cudaMemcpyDefault));
  CUDA_OK(cudaMemcpy(&result, y.data(), sizeof(int), cudaMemcpyDefault));
  EXPECT_EQ(result, 5);
}

TEST_F(CopiesTest, UnknownKindIsRefused) {
  int source = 5;
  const DeviceArray<int> x(1, 3);
  const auto kind = static_cast<cudaMemcpyKind>(7);
  EXPECT_CUDA_ERROR(cudaMemcpy(x.data(), &source, sizeof(int), kind), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(x.value(), 3);
}

TEST_F(CopiesTest, NoBytesChangeNothing) {
  int host = 5;
  const DeviceArray<int> x(1, 3);
  const Stream stream;
  CUDA_OK(cudaMemcpy(x.data(), &host, 0, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpyAsync(&host, x.data(), 0, cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaMemset(x.data(), 0, 0));
  CUDA_OK(cudaMemcpy2D(x.data(), 4, &host, 4, 0, 1, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy2D(x.data(), 4, &host, 4, 4, 0, cudaMemcpyHostToDevice));
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.value(), 3);
  EXPECT_EQ(host, 5);
}

TEST_F(CopiesTest, OddAddressesAndSizes) {
  std::vector<char> source(100);
  std::iota(source.begin(), source.end(), 0);
  const DeviceArray<char> x(100, -1);
  CUDA_OK(cudaMemcpy(x.data() + 3, source.data() + 7, 13, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(x.data() + 51, x.data() + 5, 7, cudaMemcpyDeviceToDevice));
  std::vector<char> expected(100, -1);
  std::copy_n(source.begin() + 7, 13, expected.begin() + 3);
  std::copy_n(source.begin() + 9, 7, expected.begin() + 51);
  EXPECT_EQ(x.values(), expected);
}

TEST_F(CopiesTest, MemsetFillsBytesAndNotMore) {
  const DeviceArray<int> x(4, 7);
  CUDA_OK(cudaMemset(x.data() + 1, 0x102, 2 * sizeof(int)));  // only the lowest byte counts
  EXPECT_EQ(x.values(), (std::vector<int>{7, 0x02020202, 0x02020202, 7}));
}

TEST_F(CopiesTest, MemsetRunsInTheOrderOfItsStream) {
  const DeviceArray<int> x(1, 0), y(1, 5);
  const Stream stream;
  Gate gate(stream);
  set<<<1, 1, 0, stream>>>(x.data(), 1);
  CUDA_OK(cudaMemsetAsync(x.data(), 0, sizeof(int), stream));
  copy_one<<<1, 1, 0, stream>>>(y.data(), x.data());
  set<<<1, 1, 0, stream>>>(x.data(), 2);
  gate.drain(stream);
  EXPECT_EQ(y.value(), 0);
  EXPECT_EQ(x.value(), 2);
}

/// Sizes of a 2-D copy, in ints.
struct Rows {
  std::size_t width, height, from_pitch, to_pitch;
};
class PitchedCopyTest : public GpuTest, public testing::WithParamInterface<Rows> {};

TEST_P(PitchedCopyTest, CopiesTheRowsAndLeavesThePaddingAlone) {
  const auto [width, height, from_pitch, to_pitch] = GetParam();
  const std::vector<int> source = numbers(from_pitch * height);
  std::vector<int> expected(to_pitch * height, -1);
  for (std::size_t row = 0; row < height; ++row) {
    std::copy_n(source.begin() + row * from_pitch, width, expected.begin() + row * to_pitch);
  }
  const std::size_t bytes = width * sizeof(int), from = from_pitch * sizeof(int), to = to_pitch * sizeof(int);

  const DeviceArray<int> up(expected.size(), -1);
  CUDA_OK(cudaMemcpy2D(up.data(), to, source.data(), from, bytes, height, cudaMemcpyHostToDevice));
  EXPECT_EQ(up.values(), expected) << "to the device";

  const DeviceArray<int> device_source(source), across(expected.size(), -1);
  const Stream stream;
  CUDA_OK(cudaMemcpy2DAsync(across.data(), to, device_source.data(), from, bytes, height,
                            cudaMemcpyDeviceToDevice, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(across.values(), expected) << "on the device";

  std::vector<int> down(expected.size(), -1);
  CUDA_OK(cudaMemcpy2D(down.data(), to, device_source.data(), from, bytes, height, cudaMemcpyDeviceToHost));
  EXPECT_EQ(down, expected) << "to the host";
}
INSTANTIATE_TEST_SUITE_P(Shapes, PitchedCopyTest,
                         testing::Values(Rows{1, 1, 1, 1}, Rows{3, 5, 3, 3}, Rows{3, 5, 8, 3},
                                         Rows{3, 5, 3, 8}, Rows{7, 4, 9, 11}, Rows{1, 100, 64, 2},
                                         Rows{1000, 3, 1024, 1000}));

TEST_F(CopiesTest, PitchSmallerThanTheWidthIsRefused) {
  std::vector<int> host(8, 0);
  const DeviceArray<int> x(8, 1);
  EXPECT_CUDA_ERROR(cudaMemcpy2D(x.data(), 8, host.data(), 16, 16, 2, cudaMemcpyHostToDevice),
                    cudaErrorInvalidPitchValue);
  EXPECT_CUDA_ERROR(cudaMemcpy2D(x.data(), 16, host.data(), 8, 16, 2, cudaMemcpyHostToDevice),
                    cudaErrorInvalidPitchValue);
  EXPECT_EQ(x.values(), std::vector<int>(8, 1));
}

// Guide, "Stream and Event Behavior": a copy may be issued to a stream of a device that is not current.
TEST_F(CopiesOfTwoGpusTest, CopyInAStreamOfAnotherGpu) {
  PinnedArray<int> host(2, 4);
  host[1] = 0;
  const DeviceArray<int> x(1, 0);
  const auto stream = made_on(1, [] { return Stream(); });
  CUDA_OK(cudaMemcpyAsync(x.data(), &host[0], sizeof(int), cudaMemcpyHostToDevice, stream));
  CUDA_OK(cudaMemcpyAsync(&host[1], x.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(host[1], 4);
}

}  // namespace
}  // namespace semantics
