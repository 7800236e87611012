// The arithmetic of wgmma: where a descriptor finds the elements of an operand, and the product.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWgmmaRows = 64, kWgmmaDepth = 16, kWgmmaMostColumns = 256;

/// An operand in shared memory: 16 elements of 16 bits along k for each of its `rows` indices of m or n, in
/// chunks of 16 bytes. The canonical layouts are those of CUTLASS (mma_sm90_desc.hpp).
class WgmmaOperand {
 public:
  static constexpr int kChunkBytes = 16, kChunkElements = 8;

  WgmmaOperand(std::uint64_t descriptor, bool mn_major, int rows);

  int chunks() const { return rows_ * kWgmmaDepth / kChunkElements; }
  /// The shared address of a chunk. K-major: chunk 2 r + c has elements 8 c ... 8 c + 7 along k of row r.
  /// MN-major: chunk k rows / 8 + q has rows 8 q ... 8 q + 7 of that k.
  std::uint32_t address(int chunk) const;
  /// The elements of all chunks, as float: along k first, or along the rows first if `rows_first`.
  void to_float(std::span<const std::byte* const> chunks, bool bfloat16, bool rows_first, float* to) const;

 private:
  template <class Format>
  void widen(std::span<const std::byte* const> chunks, bool rows_first, float* to) const;

  bool mn_major_;
  int rows_;
  std::uint32_t start_, leading_, stride_;  // bytes
  std::uint32_t swizzle_chunks_;            // 1: none
};

/// D[64, columns] by thread of the warpgroup.
using WgmmaFragments = std::array<float*, kWarpgroupThreads>;

/// D = A B, plus D if `accumulate`. a: [64, 16], b: [16, columns].
void multiply_fragments(const WgmmaFragments& d, int columns, const float* a, const float* b,
                        bool accumulate);

}  // namespace vgpu
