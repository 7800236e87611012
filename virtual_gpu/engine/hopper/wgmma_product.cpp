#include "engine/hopper/wgmma_product.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <cstring>

#include "vgpu/sixteen_bit.h"

namespace vgpu {

WgmmaOperand::WgmmaOperand(std::uint64_t descriptor, bool mn_major, int rows)
    : mn_major_(mn_major), rows_(rows) {
  // Fields of 14 bits, in units of 16 bytes (PTX, "Matrix Descriptor Format").
  const auto field = [descriptor](int bit) {
    return static_cast<std::uint32_t>((descriptor >> bit & 0x3fff) * kChunkBytes);
  };
  start_ = field(0);
  leading_ = field(16);
  stride_ = field(32);
  constexpr std::uint32_t kSwizzles[] = {1, 8, 4, 2};  // none, 128, 64, 32 bytes
  swizzle_chunks_ = kSwizzles[descriptor >> 62];
}

std::uint32_t WgmmaOperand::address(int chunk) const {
  const auto n = static_cast<std::uint32_t>(chunk);
  const auto row_chunks = static_cast<std::uint32_t>(rows_ / kChunkElements);
  const std::uint32_t width = swizzle_chunks_ * kChunkBytes;  // of a row of an atom
  std::uint32_t offset = 0;
  if (!mn_major_) {
    const std::uint32_t row = n / 2, along = n % 2;
    offset = row % 8 * width + row / 8 * stride_ + along * (swizzle_chunks_ == 1 ? leading_ : kChunkBytes);
  } else {
    const std::uint32_t k = n / row_chunks, q = n % row_chunks;
    // Without a swizzle the two distances change their roles.
    const std::uint32_t along_k = swizzle_chunks_ == 1 ? leading_ : stride_;
    const std::uint32_t along_rows = swizzle_chunks_ == 1 ? stride_ : leading_;
    offset = q % swizzle_chunks_ * kChunkBytes + q / swizzle_chunks_ * along_rows + k % 8 * width +
             k / 8 * along_k;
  }
  const std::uint32_t plain = start_ + offset;
  return plain ^ (plain >> 7 & (swizzle_chunks_ - 1)) * kChunkBytes;
}

template <class Format>
void WgmmaOperand::widen(std::span<const std::byte* const> chunks, bool rows_first, float* to) const {
  const int row_chunks = rows_ / kChunkElements;
  for (int n = 0; n < static_cast<int>(chunks.size()); ++n) {
    std::uint16_t bits[kChunkElements];
    std::memcpy(bits, chunks[n], sizeof bits);
    float values[kChunkElements];
    for (int i = 0; i < kChunkElements; ++i) values[i] = Format::to_float(bits[i]);
    const int row = mn_major_ ? n % row_chunks * kChunkElements : n / 2;
    const int k = mn_major_ ? n / row_chunks : n % 2 * kChunkElements;
    float* first = to + (rows_first ? k * rows_ + row : row * kWgmmaDepth + k);
    const int step = mn_major_ == rows_first ? 1 : rows_first ? rows_ : kWgmmaDepth;
    for (int i = 0; i < kChunkElements; ++i) first[i * step] = values[i];
  }
}

void WgmmaOperand::to_float(std::span<const std::byte* const> chunks, bool bfloat16, bool rows_first,
                            float* to) const {
  bfloat16 ? widen<Bfloat16Format>(chunks, rows_first, to) : widen<HalfFormat>(chunks, rows_first, to);
}

namespace {

/// Calls move(element of D[64, columns] at `tile`, two neighbours of the fragments) for all of them (PTX,
/// "Register Fragments and Shared Memory Matrix Layouts": D of wgmma).
template <class Move>
void for_each_pair(const WgmmaFragments& fragments, int columns, float* tile, Move move) {
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    float* own = fragments[thread];
    float* upper = tile + (thread / 32 * 16 + thread % 32 / 4) * columns + thread % 4 * 2;
    float* lower = upper + 8 * columns;
    for (int eighth = 0; eighth < columns / 8; ++eighth) {
      move(upper + 8 * eighth, own + 4 * eighth);
      move(lower + 8 * eighth, own + 4 * eighth + 2);
    }
  }
}

constexpr std::size_t kPair = 2 * sizeof(float);

/// sums[64, columns] += A[64, 16] B[16, columns], in pieces of 4 rows and two vectors, whose sums stay in
/// registers. (g++ 12 vectorises loops over floats badly.)
void multiply_tile(const float* a, const float* b, int columns, float* sums) {
  using Vector = float __attribute__((vector_size(16)));
  constexpr int kHigh = 4, kWide = 2, kStep = kWide * int{sizeof(Vector) / sizeof(float)};
  static_assert(kWgmmaRows % kHigh == 0);
  for (int row = 0; row < kWgmmaRows; row += kHigh, a += kHigh * kWgmmaDepth, sums += kHigh * columns) {
    for (int column = 0; column < columns; column += kStep) {
      Vector sum[kHigh][kWide], from[kWide];
      for (int r = 0; r < kHigh; ++r) std::memcpy(sum[r], sums + r * columns + column, sizeof sum[r]);
      for (int k = 0; k < kWgmmaDepth; ++k) {
        std::memcpy(from, b + k * columns + column, sizeof from);
        for (int r = 0; r < kHigh; ++r) {
          for (int i = 0; i < kWide; ++i) sum[r][i] += a[r * kWgmmaDepth + k] * from[i];
        }
      }
      for (int r = 0; r < kHigh; ++r) std::memcpy(sums + r * columns + column, sum[r], sizeof sum[r]);
    }
  }
}

#ifdef __x86_64__
/// The same with vectors of twice the width. Without FMA: the sums are the same on every processor.
[[gnu::target("avx")]] void multiply_tile_by_avx(const float* a, const float* b, int columns, float* sums) {
  constexpr int kHigh = 4, kWide = 2, kVector = 8;
  for (int row = 0; row < kWgmmaRows; row += kHigh, a += kHigh * kWgmmaDepth, sums += kHigh * columns) {
    for (int column = 0; column < columns; column += kWide * kVector) {
      __m256 sum[kHigh][kWide];
      for (int r = 0; r < kHigh; ++r) {
        for (int i = 0; i < kWide; ++i)
          sum[r][i] = _mm256_loadu_ps(sums + r * columns + column + i * kVector);
      }
      for (int k = 0; k < kWgmmaDepth; ++k) {
        const float* from = b + k * columns + column;
        for (int r = 0; r < kHigh; ++r) {
          for (int i = 0; i < kWide; ++i)
            sum[r][i] += a[r * kWgmmaDepth + k] * _mm256_loadu_ps(from + i * kVector);
        }
      }
      for (int r = 0; r < kHigh; ++r) {
        for (int i = 0; i < kWide; ++i)
          _mm256_storeu_ps(sums + r * columns + column + i * kVector, sum[r][i]);
      }
    }
  }
}
#endif

void multiply(const float* a, const float* b, int columns, float* sums) {
#ifdef __x86_64__
  static const bool has_avx = __builtin_cpu_supports("avx");
  if (has_avx && columns % 16 == 0) return multiply_tile_by_avx(a, b, columns, sums);
#endif
  multiply_tile(a, b, columns, sums);
}

}  // namespace

void multiply_fragments(const WgmmaFragments& d, int columns, const float* a, const float* b,
                        bool accumulate) {
  alignas(64) static float tile[kWgmmaRows * kWgmmaMostColumns];
  if (accumulate) {
    for_each_pair(d, columns, tile, [](float* at, const float* own) { std::memcpy(at, own, kPair); });
  } else {
    std::memset(tile, 0, sizeof(float) * static_cast<std::size_t>(kWgmmaRows * columns));
  }
  multiply(a, b, columns, tile);
  for_each_pair(d, columns, tile, [](const float* at, float* own) { std::memcpy(own, at, kPair); });
}

}  // namespace vgpu
