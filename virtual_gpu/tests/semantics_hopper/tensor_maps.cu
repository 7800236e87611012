// Boxes of tensors: one to three dimensions, out-of-bounds elements, swizzles. A box must begin at a multiple
// of 16 bytes in its rows: otherwise an H200 raises an illegal instruction.
#include "hopper_test.hpp"

namespace semantics {
namespace {

using TensorMapTest = HopperTest;
constexpr int kMaxElements = 4096;

/// Loads the box at index `at` of a tensor of `rank` dimensions, and copies its shared memory as it is. The
/// box begins `offset` bytes after a multiple of 1024.
template <class T>
__global__ void show_box(const __grid_constant__ CUtensorMap map, int rank, int3 at, T* to, int elements,
                         int offset) {
  __shared__ std::uint64_t barrier;
  alignas(1024) __shared__ T memory[kMaxElements];
  T* box = memory + static_cast<std::size_t>(offset) / sizeof(T);
  start_barrier(&barrier, 1);
  if (threadIdx.x == 0) {
    expect_bytes(&barrier, static_cast<std::uint32_t>(static_cast<std::size_t>(elements) * sizeof(T)));
    const std::int32_t line[1] = {at.x}, plane[2] = {at.x, at.y}, space[3] = {at.x, at.y, at.z};
    if (rank == 1)
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, line, &barrier);
    if (rank == 2)
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, plane, &barrier);
    if (rank == 3)
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, space, &barrier);
  }
  await_phase(&barrier, 0);
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += static_cast<int>(blockDim.x)) to[i] = box[i];
}

template <class T>
std::vector<T> box_at(const Tensor<T>& tensor, int3 at, int offset = 0) {
  int elements = 1;
  for (const cuuint32_t side : tensor.box) elements *= static_cast<int>(side);
  const DeviceArray<T> to(static_cast<std::size_t>(elements));
  show_box<T>
      <<<1, 64>>>(map_of(tensor), static_cast<int>(tensor.sizes.size()), at, to.data(), elements, offset);
  require(cudaGetLastError());
  return to.values();
}

TEST_F(TensorMapTest, OneDimensionAndItsEnds) {
  const DeviceArray<int> data(counted<int>(20, 1));
  const Tensor<int> tensor{data.data(), {18}, {}, {8}};
  EXPECT_EQ(box_at(tensor, {4, 0, 0}), (std::vector<int>{5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(box_at(tensor, {12, 0, 0}), (std::vector<int>{13, 14, 15, 16, 17, 18, 0, 0}))
      << "zeros behind its end";
  EXPECT_EQ(box_at(tensor, {-4, 0, 0}), (std::vector<int>{0, 0, 0, 0, 1, 2, 3, 4}))
      << "and before its beginning";
  EXPECT_EQ(box_at(tensor, {100, 0, 0}), std::vector<int>(8, 0)) << "the bytes count as if they had come";
}

/// The box has rows of 12 elements, the tensor of 10.
template <class T>
void expect_matrix_box(int x, int y) {
  constexpr int kPitch = 32, kColumns = 19, kRows = 7;
  const DeviceArray<T> data(counted<T>(kPitch * kRows, 1));
  constexpr int kBoxColumns = 16, kBoxRows = 4;
  const Tensor<T> tensor{data.data(), {kColumns, kRows}, {kPitch}, {kBoxColumns, kBoxRows}};
  std::vector<T> expected;
  for (int row = y; row < y + kBoxRows; ++row) {
    for (int column = x; column < x + kBoxColumns; ++column) {
      const bool inside = row >= 0 && row < kRows && column >= 0 && column < kColumns;
      expected.push_back(inside ? static_cast<T>(row * kPitch + column + 1) : T{});
    }
  }
  EXPECT_EQ(box_at(tensor, {x, y, 0}), expected) << sizeof(T) << " bytes, at " << x << ", " << y;
}

TEST_F(TensorMapTest, TwoDimensionsAndTheirEdges) {
  for (const int y : {0, 2, 5, -2, 9}) {
    for (const int x : {0, 4, 12, -8}) expect_matrix_box<int>(x, y);
  }
}

TEST_F(TensorMapTest, ElementsOfAllSizes) {
  expect_matrix_box<std::uint8_t>(16, 5);
  expect_matrix_box<std::uint16_t>(8, 5);
  expect_matrix_box<long long>(10, 5);
}

TEST_F(TensorMapTest, ThreeDimensions) {
  constexpr int kX = 8, kY = 5, kZ = 4;
  const DeviceArray<int> data(counted<int>(kX * kY * kZ, 1));
  const Tensor<int> tensor{data.data(), {kX, kY, kZ}, {kX, kX * kY}, {4, 3, 2}};
  std::vector<int> expected;
  for (int z = 3; z < 5; ++z) {
    for (int y = -1; y < 2; ++y) {
      for (int x = 4; x < 8; ++x) expected.push_back(y < 0 || z >= kZ ? 0 : (z * kY + y) * kX + x + 1);
    }
  }
  EXPECT_EQ(box_at(tensor, {4, -1, 3}), expected);
}

/// Stores a box of ones, twos, ... at index `at`.
__global__ void store_box(const __grid_constant__ CUtensorMap map, int x, int y, int elements) {
  alignas(128) __shared__ int box[kMaxElements];
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += static_cast<int>(blockDim.x))
    box[i] = static_cast<int>(i + 1);
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::int32_t at[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, box);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

// A store must begin inside the tensor: for a negative index an H200 raises an illegal instruction (a load
// may have one). It also ends at a multiple of 16 bytes: of a row of 10 ints an H200 writes 12.
TEST_F(TensorMapTest, StoresWriteNothingOutside) {
  constexpr int kPitch = 16, kColumns = 12, kRows = 5, kBoxColumns = 8, kBoxRows = 4;
  for (const int y : {0, 3, 7}) {
    for (const int x : {0, 4, 8, 12}) {
      const DeviceArray<int> data(kPitch * kRows, -1);
      const Tensor<int> tensor{data.data(), {kColumns, kRows}, {kPitch}, {kBoxColumns, kBoxRows}};
      store_box<<<1, 32>>>(map_of(tensor), x, y, kBoxColumns * kBoxRows);
      std::vector<int> expected(kPitch * kRows, -1);
      for (int i = 0; i < kBoxColumns * kBoxRows; ++i) {
        const int row = y + i / kBoxColumns, column = x + i % kBoxColumns;
        if (row >= 0 && row < kRows && column >= 0 && column < kColumns)
          expected[row * kPitch + column] = i + 1;
      }
      EXPECT_EQ(data.values(), expected) << "at " << x << ", " << y;
    }
  }
}

/// The position of 16-byte chunk `chunk` of a box that begins `offset` bytes after a multiple of 1024: the
/// swizzle combines the chunk's index in the swizzle's span with the index of the 128-byte row.
int chunk_place(int chunk, int swizzle_bytes, int offset) {
  const int address = offset + 16 * chunk;
  const int mask = swizzle_bytes / 16 - 1;
  return ((address ^ (((address >> 7) & mask) << 4)) - offset) / 16;
}

class SwizzleTest : public HopperTest, public testing::WithParamInterface<int> {
 protected:
  CUtensorMapSwizzle swizzle() const {
    return GetParam() == 32   ? CU_TENSOR_MAP_SWIZZLE_32B
           : GetParam() == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                              : CU_TENSOR_MAP_SWIZZLE_128B;
  }
};
INSTANTIATE_TEST_SUITE_P(Bytes, SwizzleTest, testing::Values(32, 64, 128));

TEST_P(SwizzleTest, ChunksChangePlacesByTheirAddresses) {
  const int columns = GetParam() / static_cast<int>(sizeof(std::uint16_t)), rows = 32;
  const std::vector<std::uint16_t> values = counted<std::uint16_t>(static_cast<std::size_t>(columns * rows));
  const DeviceArray<std::uint16_t> data(values);
  const Tensor<std::uint16_t> tensor{data.data(),
                                     {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)},
                                     {static_cast<cuuint64_t>(columns)},
                                     {static_cast<cuuint32_t>(columns), static_cast<cuuint32_t>(rows)},
                                     swizzle()};
  for (const int offset : {0, 1024, 2048}) {
    const std::vector<std::uint16_t> got = box_at(tensor, {0, 0, 0}, offset);
    for (int i = 0; i < columns * rows; ++i) {
      const int there = 8 * chunk_place(i / 8, GetParam(), offset) + i % 8;
      ASSERT_EQ(got[there], values[i]) << "element " << i << ", offset " << offset;
    }
  }
}

/// Loads a box and stores it again: the two swizzles cancel.
__global__ void move_box(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                         std::uint32_t bytes) {
  __shared__ std::uint64_t barrier;
  alignas(1024) __shared__ int box[kMaxElements];
  start_barrier(&barrier, 1);
  expect_bytes(&barrier, bytes);
  const std::int32_t at[2] = {0, 0};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &from, at, &barrier);
  await_phase(&barrier, 0);
  ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, box);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

TEST_P(SwizzleTest, BothDirectionsAgree) {
  const auto columns = static_cast<cuuint32_t>(GetParam() / static_cast<int>(sizeof(int)));
  constexpr cuuint32_t kRows = 20;
  const std::vector<int> values = counted<int>(columns * kRows, 7);
  const DeviceArray<int> from(values), to(values.size(), -1);
  Tensor<int> tensor{from.data(), {columns, kRows}, {columns}, {columns, kRows}, swizzle()};
  const CUtensorMap source = map_of(tensor);
  tensor.data = to.data();
  move_box<<<1, 1>>>(source, map_of(tensor), columns * kRows * static_cast<std::uint32_t>(sizeof(int)));
  EXPECT_EQ(to.values(), values);
}

/// Valid arguments of cuTensorMapEncodeTiled for a matrix of 64 x 8 floats.
struct Encoding {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuuint32_t rank = 2;
  std::size_t address_offset = 0;
  cuuint64_t sizes[2] = {64, 8}, stride = 256;
  cuuint32_t box[2] = {32, 8}, element_strides[2] = {1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  CUresult encode(std::byte* memory) const {
    CUtensorMap map{};
    return cuTensorMapEncodeTiled(&map, type, rank, memory + address_offset, sizes, &stride, box,
                                  element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, fill);
  }
};

TEST_F(TensorMapTest, WhatTheReferenceForbidsIsRefused) {
  const DeviceArray<int> memory(64 * 8);
  auto* data = reinterpret_cast<std::byte*>(memory.data());
  const auto refused = [data](auto change) {
    Encoding encoding;
    change(encoding);
    return encoding.encode(data) == CUDA_ERROR_INVALID_VALUE;
  };
  EXPECT_EQ(Encoding().encode(data), CUDA_SUCCESS);
  EXPECT_TRUE(refused([](Encoding& e) { e.rank = 0; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.rank = 6; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.address_offset = 8; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.sizes[0] = 0; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.sizes[1] = (cuuint64_t{1} << 32) + 1; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.stride = 264; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.stride = cuuint64_t{1} << 40; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.box[0] = 0; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.box[1] = 257; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.box[0] = 30; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.box[0] = 36; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.element_strides[1] = 0; }));
  EXPECT_TRUE(refused([](Encoding& e) { e.element_strides[1] = 9; }));
  EXPECT_TRUE(refused([](Encoding& e) {
    e.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
    e.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  }));
}

TEST_F(TensorMapTest, TheDriverGivesTheFunctionByName) {
  void* function = nullptr;
  auto found = cudaDriverEntryPointSymbolNotFound;
  CUDA_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                           &found));
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
  EXPECT_NE(function, nullptr);
  CUDA_OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &found));
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace semantics
