// Tensor stores that add (cp.reduce.async.bulk.tensor with .add): by the PTX ISA each element is added
// atomically, and rounded to nearest even.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hopper_test.hpp"
#include "peer_access.hpp"

namespace semantics {
namespace {

using AdditionTest = HopperTest;
constexpr int kColumns = 32, kRows = 6, kBoxColumns = 16, kBoxRows = 4;

template <class T>
constexpr CUtensorMapDataType kAddedType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
constexpr CUtensorMapDataType kAddedType<__half> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
template <>
constexpr CUtensorMapDataType kAddedType<__nv_bfloat16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
template <>
constexpr CUtensorMapDataType kAddedType<int> = CU_TENSOR_MAP_DATA_TYPE_INT32;
template <>
constexpr CUtensorMapDataType kAddedType<unsigned> = CU_TENSOR_MAP_DATA_TYPE_UINT32;
template <>
constexpr CUtensorMapDataType kAddedType<unsigned long long> = CU_TENSOR_MAP_DATA_TYPE_UINT64;

/// Adds to a whole matrix, box by box.
template <class T>
CUtensorMap boxes_of(T* data) {
  return map_of(Tensor<T>{data, {kColumns, kRows}, {kColumns}, {kBoxColumns, kBoxRows}}, kAddedType<T>);
}

/// Adds a box of `value` at index (x, y), `times` times. `seen`: the matrix's first elements after the last
/// full wait.
template <class T>
__global__ void add_box(const __grid_constant__ CUtensorMap map, float value, int x, int y, int times,
                        const T* memory, float* seen) {
  alignas(128) __shared__ T box[kBoxColumns * kBoxRows];
  for (int i = static_cast<int>(threadIdx.x); i < kBoxColumns * kBoxRows; i += static_cast<int>(blockDim.x))
    box[i] = static_cast<T>(value);
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::int32_t at[2] = {x, y};
    for (int i = 0; i < times; ++i) {
      ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &map, at, box);
      ptx::cp_async_bulk_commit_group();
    }
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    if (seen != nullptr) *seen = static_cast<float>(memory[0]);
  }
}

template <class T>
std::vector<float> floats_of(const DeviceArray<T>& data) {
  std::vector<float> floats;
  for (const T& element : data.values()) floats.push_back(static_cast<float>(element));
  return floats;
}

template <class T>
void expect_added() {
  const DeviceArray<T> data(kColumns * kRows, static_cast<T>(5.0f));
  const CUtensorMap map = boxes_of(data.data());
  add_box<T><<<1, 32>>>(map, 3, 16, 1, 1, data.data(), nullptr);
  std::vector<float> expected(kColumns * kRows, 5);
  for (int row = 1; row < 1 + kBoxRows; ++row) {
    for (int column = 16; column < 32; ++column) expected[row * kColumns + column] = 8;
  }
  EXPECT_EQ(floats_of(data), expected) << "type " << kAddedType<T>;
}

TEST_F(AdditionTest, TheTensorSaysWhatItsElementsAre) {
  expect_added<__half>();
  expect_added<__nv_bfloat16>();
  expect_added<float>();
  expect_added<int>();
  expect_added<unsigned>();
  expect_added<unsigned long long>();
}

TEST_F(AdditionTest, NegativeWholeNumbersAreAddedToo) {
  const DeviceArray<int> data(kColumns * kRows, 5);
  add_box<int><<<1, 32>>>(boxes_of(data.data()), -7, 0, 0, 1, data.data(), nullptr);
  EXPECT_EQ(data.value(), -2);
}

TEST_F(AdditionTest, NothingIsAddedOutside) {
  const DeviceArray<float> data(kColumns * kRows, 1);
  const Tensor<float> inner{data.data(), {24, 5}, {kColumns}, {kBoxColumns, kBoxRows}};
  const CUtensorMap map = map_of(inner, kAddedType<float>);
  add_box<float><<<1, 32>>>(map, 2, 16, 3, 1, data.data(), nullptr);
  add_box<float><<<1, 32>>>(map, 2, 32, 0, 1, data.data(), nullptr);
  add_box<float><<<1, 32>>>(map, 2, 0, 8, 1, data.data(), nullptr);
  std::vector<float> expected(kColumns * kRows, 1);
  for (int row = 3; row < 5; ++row) {
    for (int column = 16; column < 24; ++column) expected[row * kColumns + column] = 3;
  }
  EXPECT_EQ(floats_of(data), expected);
}

TEST_F(AdditionTest, NoneOfManyBlocksIsLost) {
  constexpr int kBlocks = 40, kTimes = 5;
  const DeviceArray<int> whole(kColumns * kRows, 0);
  add_box<int><<<kBlocks, 32>>>(boxes_of(whole.data()), 1, 0, 0, kTimes, whole.data(), nullptr);
  EXPECT_EQ(whole.value(), kBlocks * kTimes);
  const DeviceArray<__half> half(kColumns * kRows, __half(0.0f));
  add_box<__half><<<kBlocks, 32>>>(boxes_of(half.data()), 1, 0, 0, kTimes, half.data(), nullptr);
  EXPECT_EQ(static_cast<float>(half.value()), kBlocks * kTimes);
}

TEST_F(AdditionTest, TheFullWaitShowsTheSum) {
  const DeviceArray<float> data(kColumns * kRows, 1), seen(1, 0);
  add_box<float><<<1, 32>>>(boxes_of(data.data()), 2, 0, 0, 3, data.data(), seen.data());
  EXPECT_EQ(seen.value(), 7);
}

/// The sum of these summands, added to 0 in this order.
template <class T>
float sum_of(std::initializer_list<float> summands) {
  const DeviceArray<T> data(kColumns * kRows, static_cast<T>(0.0f));
  for (const float summand : summands)
    add_box<T><<<1, 32>>>(boxes_of(data.data()), summand, 0, 0, 1, data.data(), nullptr);
  return static_cast<float>(data.value());
}

TEST_F(AdditionTest, EachAdditionRoundsToNearestEven) {
  EXPECT_EQ(sum_of<__half>({2048, 1, 1}), 2048) << "2049 lies between 2048 and 2050, twice";
  EXPECT_EQ(sum_of<__half>({1, 1, 2048}), 2050) << "the same summands in another order";
  EXPECT_EQ(sum_of<__half>({2050, 1}), 2052);
  EXPECT_EQ(sum_of<__nv_bfloat16>({256, 1, 1}), 256);
  EXPECT_EQ(sum_of<__nv_bfloat16>({1, 1, 256}), 258);
  EXPECT_EQ(sum_of<__nv_bfloat16>({258, 1}), 260);
  EXPECT_EQ(sum_of<float>({2048, 1, 1}), 2050);
  EXPECT_EQ(sum_of<float>({16777216, 1, 1}), 16777216);
}

class PeerAdditionTest : public TwoGpusTest {
 protected:
  void SetUp() override {
    TwoGpusTest::SetUp();
    if (IsSkipped()) return;
    int major = 0, access = 0;
    require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major < 9) GTEST_SKIP() << "needs compute capability 9.0";
    require(cudaDeviceCanAccessPeer(&access, 1, 0));
    if (access == 0) GTEST_SKIP() << "needs access to the other GPU's memory";
  }
};

// The PTX ISA promises atomic additions only among the threads of one GPU (".relaxed.gpu"). Additions to a
// peer's memory rely on more: this test shows that two GPUs lose none either.
TEST_F(PeerAdditionTest, TwoGpusMayAddToTheSameElements) {
  constexpr int kBlocks = 20, kTimes = 10;
  const PeerAccess access(1, 0);
  const DeviceArray<float> data(kColumns * kRows, 0);
  const CUtensorMap map = boxes_of(data.data());
  for (const int device : {0, 1}) {
    require(cudaSetDevice(device));
    add_box<float><<<kBlocks, 32>>>(map, 1, 0, 0, kTimes, data.data(), nullptr);
    require(cudaGetLastError());
  }
  for (const int device : {1, 0}) {
    require(cudaSetDevice(device));
    require(cudaDeviceSynchronize());
  }
  EXPECT_EQ(data.value(), 2 * kBlocks * kTimes);
}

}  // namespace
}  // namespace semantics
