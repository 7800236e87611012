// Offsets beyond 2^31 and 2^32 elements, on virtual GPUs whose memory exists where it is written. An offset
// in 32 bits fails only in arrays of more than 2^31 elements, which no test can fill. So these tests launch a
// kernel with its real grid and run one block, whose last rows (every 65536th) lie beyond 2^32 elements.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/stream.hpp"
#include "sparse_run.hpp"
#include "sparse_values.hpp"
#include "vgpu/control.hpp"

namespace overlap {

/// On a machine with room for arrays of more than 2^32 elements.
class FarRows : public testing::Test {
 protected:
  void SetUp() override {
    vgpu::reset();
    vgpu::use_machine(OVERLAP_FAR_ROWS_MACHINE);
    CUDA_CHECK(cudaSetDevice(0));
  }
  void TearDown() override { vgpu::reset(); }
};

/// The smallest element type, so that bytes pass 2^32 where elements pass 2^31.
using FarElement = __nv_bfloat16;

inline constexpr std::int64_t kFarFeatures = 1024;
inline constexpr std::int64_t kFarRows = (std::int64_t{1} << 22) + 8;  ///< 2^32 + 8192 elements
inline constexpr std::size_t kFarElements = kFarRows * kFarFeatures;
inline constexpr unsigned kFarGrid = 65536;  ///< blocks, as the algorithms have them for so many rows

/// Enqueues a kernel of which only that block runs, and waits for it.
template <typename Launch>
void run_block(std::uint64_t block, const Launch& launch) {
  vgpu::run_blocks({block, 1});
  launch();
  CUDA_CHECK(cudaGetLastError());
  vgpu::run_blocks({});
  CUDA_CHECK(cudaDeviceSynchronize());
}

/// The rows of block 3 of a grid of kFarGrid: 65 of them, from 3 to 2^22 + 3.
inline std::vector<std::int64_t> rows_of_the_block() { return stride(3, kFarGrid, kFarRows / kFarGrid + 1); }
inline constexpr std::uint64_t kFarBlock = 3;  ///< the block that has them

/// The row as far from the end as that one from the beginning.
inline std::int64_t opposite(std::int64_t row) { return kFarRows - 1 - row; }

/// Test values of a row: different in each column from all rows of the block and opposite it; sums of two
/// rows are exact.
inline std::vector<FarElement> far_values(std::int64_t row) {
  std::vector<FarElement> values;
  for (std::int64_t feature = 0; feature < kFarFeatures; ++feature)
    values.push_back(from_float<FarElement>(static_cast<float>(1 + row / kFarGrid + feature % 61)));
  return values;
}

/// Copies to and from a place of a large array in device memory.
///@{
template <typename T>
void put(const DeviceBuffer<T>& array, std::int64_t place, const std::vector<T>& values) {
  CUDA_CHECK(
      cudaMemcpy(array.data() + place, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
}
template <typename T>
T at(const DeviceBuffer<T>& array, std::int64_t place) {
  return on_host(array.data() + place, 1).front();
}
///@}

inline void put_row(const DeviceBuffer<FarElement>& table, std::int64_t row,
                    const std::vector<FarElement>& values) {
  put(table, row * kFarFeatures, values);
}

inline void expect_row(const DeviceBuffer<FarElement>& table, std::int64_t row,
                       const std::vector<FarElement>& expected) {
  EXPECT_TRUE(same_bits(on_host(table.data() + row * kFarFeatures, kFarFeatures), expected)) << "row " << row;
}

}  // namespace overlap
