// The CPU reference. Compiled with -O3, which vectorises its inner loop.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "overlap/data/parallel.hpp"
#include "overlap/data/verify.hpp"

// Compiled once for each of these instruction sets; at run time the CPU's best one is chosen. Not under
// ThreadSanitizer, because the choice is made before its run time is initialised.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define OVERLAP_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OVERLAP_CLONES
#endif

namespace overlap {
namespace {

constexpr std::int64_t kMultiplyAddsOfAStep = 4;  // see worth_a_thread()

// The block of B, 256 KiB, stays in the second-level cache; one row of C's block stays in the first level.
constexpr std::int64_t kBlockK = 64;
constexpr std::int64_t kBlockN = 1024;

// c[j] += a[0] b0[j] + a[1] b1[j] + a[2] b2[j] + a[3] b3[j], where b1 ... b3 are the rows after b0. Four rows
// at a time, so that c is read and written once for four of them. Unsigned, because sums may wrap around.
OVERLAP_CLONES
void add_four_rows(const unsigned* __restrict a, const unsigned* __restrict b, std::int64_t row_stride,
                   unsigned* __restrict c, std::int64_t columns) {
  const unsigned a0 = a[0];
  const unsigned a1 = a[1];
  const unsigned a2 = a[2];
  const unsigned a3 = a[3];
  const unsigned* __restrict b1 = b + row_stride;
  const unsigned* __restrict b2 = b1 + row_stride;
  const unsigned* __restrict b3 = b2 + row_stride;
  for (std::int64_t j = 0; j < columns; ++j) c[j] += a0 * b[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
}

OVERLAP_CLONES
void add_one_row(unsigned a, const unsigned* __restrict b, unsigned* __restrict c, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) c[j] += a * b[j];
}

// The rows `rows` of C.
void multiply_rows(MatmulShape shape, Range rows, const unsigned* a, const unsigned* b, unsigned* c) {
  std::fill(c + rows.begin * shape.n, c + rows.end * shape.n, 0U);
  for (std::int64_t n0 = 0; n0 < shape.n; n0 += kBlockN) {
    const std::int64_t columns = std::min(kBlockN, shape.n - n0);
    for (std::int64_t k0 = 0; k0 < shape.k; k0 += kBlockK) {
      const std::int64_t k1 = std::min(k0 + kBlockK, shape.k);
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const unsigned* a_row = a + i * shape.k;
        unsigned* c_row = c + i * shape.n + n0;
        std::int64_t k = k0;
        for (; k + 4 <= k1; k += 4) add_four_rows(a_row + k, b + k * shape.n + n0, shape.n, c_row, columns);
        for (; k < k1; ++k) add_one_row(a_row[k], b + k * shape.n + n0, c_row, columns);
      }
    }
  }
}

// The signed and the unsigned type may alias (C++ standard, [basic.lval]).
const unsigned* as_unsigned(std::span<const int> values) {
  return reinterpret_cast<const unsigned*>(values.data());
}

bool holds(std::size_t size, std::int64_t rows, std::int64_t columns) {
  // Checks the number of elements without a product that could overflow.
  const auto elements = static_cast<std::int64_t>(size);
  if (rows < 0 || columns < 0) return false;
  if (rows == 0 || columns == 0) return elements == 0;
  return elements % rows == 0 && elements / rows == columns;
}

void require_sizes(MatmulShape shape, std::size_t a, std::size_t b, std::size_t c) {
  if (!holds(a, shape.m, shape.k) || !holds(b, shape.k, shape.n) || !holds(c, shape.m, shape.n)) {
    throw std::invalid_argument("reference_matmul: a matrix does not have the size that the shape says");
  }
}

// Floating types: C is summed in double, kSumRows rows at a time, against blocks of B that are converted to
// double (128 KiB).
constexpr std::int64_t kSumRows = 1024;
constexpr std::int64_t kSumN = 256;
constexpr std::int64_t kSumK = 64;
constexpr std::int64_t kSmallestShare = 16;  // rows: each share converts all of B
static_assert(kSumK % 4 == 0);

// c[i][j] += a[i][0] b[0][j] + ... + a[i][3] b[3][j] for four rows i: b is then read once for 16
// multiply-adds.
OVERLAP_CLONES
void add_four_by_four(const double* __restrict a, const double* __restrict b0, double* __restrict c0,
                      std::int64_t columns) {
  const double* __restrict b1 = b0 + columns;
  const double* __restrict b2 = b1 + columns;
  const double* __restrict b3 = b2 + columns;
  double* __restrict c1 = c0 + columns;
  double* __restrict c2 = c1 + columns;
  double* __restrict c3 = c2 + columns;
  const double* __restrict a1 = a + kSumK;
  const double* __restrict a2 = a1 + kSumK;
  const double* __restrict a3 = a2 + kSumK;
  for (std::int64_t j = 0; j < columns; ++j) {
    c0[j] += a[0] * b0[j] + a[1] * b1[j] + a[2] * b2[j] + a[3] * b3[j];
    c1[j] += a1[0] * b0[j] + a1[1] * b1[j] + a1[2] * b2[j] + a1[3] * b3[j];
    c2[j] += a2[0] * b0[j] + a2[1] * b1[j] + a2[2] * b2[j] + a2[3] * b3[j];
    c3[j] += a3[0] * b0[j] + a3[1] * b1[j] + a3[2] * b2[j] + a3[3] * b3[j];
  }
}

// Copies a block of a matrix of `stride` columns as doubles into rows of `out_stride`, padded with zeros to
// out_rows x out_stride.
template <typename T>
void convert(const T* block, std::int64_t rows, std::int64_t columns, std::int64_t stride, double* out,
             std::int64_t out_rows, std::int64_t out_stride) {
  std::fill(out, out + out_rows * out_stride, 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) out[i * out_stride + j] = value_of(block[i * stride + j]);
  }
}

// sums[rows of C, columns of C from n0] = A B; `sums` has room for a multiple of four rows.
template <typename T>
void sum_block(MatmulShape shape, Range rows, std::int64_t n0, std::int64_t columns, const T* a, const T* b,
               std::vector<double>& b_block, std::vector<double>& sums) {
  double a_block[4 * kSumK];
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::int64_t k0 = 0; k0 < shape.k; k0 += kSumK) {
    const std::int64_t depth = std::min(kSumK, shape.k - k0);
    convert(b + k0 * shape.n + n0, depth, columns, shape.n, b_block.data(), (depth + 3) / 4 * 4, columns);
    for (std::int64_t i = rows.begin; i < rows.end; i += 4) {
      convert(a + i * shape.k + k0, std::min<std::int64_t>(4, rows.end - i), depth, shape.k, a_block, 4,
              kSumK);
      double* c = sums.data() + (i - rows.begin) * columns;
      for (std::int64_t k = 0; k < depth; k += 4) {
        add_four_by_four(a_block + k, b_block.data() + k * columns, c, columns);
      }
    }
  }
}

template <typename Out>
Out rounded(double sum) {
  if constexpr (std::is_same_v<Out, double>) {
    return sum;
  } else {
    return from_double<Out>(sum);
  }
}

template <typename T, typename Out>
void multiply_rows_in_double(MatmulShape shape, Range rows, const T* a, const T* b, Out* c) {
  const std::int64_t widest = std::min(kSumN, shape.n);
  const std::int64_t highest = std::min(kSumRows, (rows.size() + 3) / 4 * 4);
  std::vector<double> b_block(static_cast<std::size_t>(kSumK * widest));
  std::vector<double> sums(static_cast<std::size_t>(highest * widest));
  for (std::int64_t i0 = rows.begin; i0 < rows.end; i0 += kSumRows) {
    const Range part = {i0, std::min(i0 + kSumRows, rows.end)};
    for (std::int64_t n0 = 0; n0 < shape.n; n0 += kSumN) {
      const std::int64_t columns = std::min(kSumN, shape.n - n0);
      sum_block(shape, part, n0, columns, a, b, b_block, sums);
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const double* row = sums.data() + (i - i0) * columns;
        std::transform(row, row + columns, c + i * shape.n + n0, rounded<Out>);
      }
    }
  }
}

}  // namespace

void reference_matmul(MatmulShape shape, std::span<const int> a, std::span<const int> b, std::span<int> c) {
  require_sizes(shape, a.size(), b.size(), c.size());
  const unsigned* a_data = as_unsigned(a);
  const unsigned* b_data = as_unsigned(b);
  auto* c_data = reinterpret_cast<unsigned*>(c.data());
  if (c.empty()) return;
  parallel_shares(
      shape.m, [&](Range rows) { multiply_rows(shape, rows, a_data, b_data, c_data); },
      worth_a_thread(shape.n * shape.k / kMultiplyAddsOfAStep));
}

template <Element T, typename Out>
void reference_matmul(MatmulShape shape, std::span<const T> a, std::span<const T> b,
                      std::span<std::type_identity_t<Out>> c) {
  if constexpr (std::is_same_v<T, int>) {
    reference_matmul(shape, a, b, c);
  } else {
    require_sizes(shape, a.size(), b.size(), c.size());
    if (c.empty()) return;
    parallel_shares(
        shape.m, [&](Range rows) { multiply_rows_in_double(shape, rows, a.data(), b.data(), c.data()); },
        std::max(kSmallestShare, worth_a_thread(shape.n * shape.k / kMultiplyAddsOfAStep)));
  }
}

template void reference_matmul<int, int>(MatmulShape, std::span<const int>, std::span<const int>,
                                         std::span<int>);
template void reference_matmul<__half, __half>(MatmulShape, std::span<const __half>, std::span<const __half>,
                                               std::span<__half>);
template void reference_matmul<__half, float>(MatmulShape, std::span<const __half>, std::span<const __half>,
                                              std::span<float>);
template void reference_matmul<__half, double>(MatmulShape, std::span<const __half>, std::span<const __half>,
                                               std::span<double>);
template void reference_matmul<__nv_bfloat16, __nv_bfloat16>(MatmulShape, std::span<const __nv_bfloat16>,
                                                             std::span<const __nv_bfloat16>,
                                                             std::span<__nv_bfloat16>);
template void reference_matmul<__nv_bfloat16, float>(MatmulShape, std::span<const __nv_bfloat16>,
                                                     std::span<const __nv_bfloat16>, std::span<float>);
template void reference_matmul<__nv_bfloat16, double>(MatmulShape, std::span<const __nv_bfloat16>,
                                                      std::span<const __nv_bfloat16>, std::span<double>);
template void reference_matmul<float, float>(MatmulShape, std::span<const float>, std::span<const float>,
                                             std::span<float>);
template void reference_matmul<float, double>(MatmulShape, std::span<const float>, std::span<const float>,
                                              std::span<double>);

}  // namespace overlap
