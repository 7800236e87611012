// The CPU reference. Compiled with -O3, which vectorises its inner loop.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "overlap/parallel.hpp"
#include "overlap/verify.hpp"

// Compiled once for each of these instruction sets; the best one that the CPU has is taken at run time. Not
// under ThreadSanitizer: that choice is made before its run time is up.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define OVERLAP_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OVERLAP_CLONES
#endif

namespace overlap {
namespace {

// The part of B that is multiplied at one time, 256 KiB, stays in the second-level cache; one row of C's
// block in the first level.
constexpr std::int64_t kBlockK = 64;
constexpr std::int64_t kBlockN = 1024;

// c[j] += a[0] b0[j] + a[1] b1[j] + a[2] b2[j] + a[3] b3[j], where b1 ... b3 are the rows after b0. Four rows
// at a time, because c would otherwise be read and written once for each of them. Unsigned, because it may
// wrap around.
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

// The signed type and the unsigned one may alias (C++ standard, [basic.lval]).
const unsigned* as_unsigned(std::span<const int> values) {
  return reinterpret_cast<const unsigned*>(values.data());
}

bool holds(std::span<const int> matrix, std::int64_t rows, std::int64_t columns) {
  // Checks the number of elements without forming a product that could overflow.
  const auto elements = static_cast<std::int64_t>(matrix.size());
  if (rows < 0 || columns < 0) return false;
  if (rows == 0 || columns == 0) return elements == 0;
  return elements % rows == 0 && elements / rows == columns;
}

}  // namespace

void reference_matmul(MatmulShape shape, std::span<const int> a, std::span<const int> b, std::span<int> c) {
  if (!holds(a, shape.m, shape.k) || !holds(b, shape.k, shape.n) || !holds(c, shape.m, shape.n)) {
    throw std::invalid_argument("reference_matmul: a matrix does not have the size that the shape says");
  }
  const unsigned* a_data = as_unsigned(a);
  const unsigned* b_data = as_unsigned(b);
  auto* c_data = reinterpret_cast<unsigned*>(c.data());
  if (c.empty()) return;
  parallel_shares(shape.m, [&](Range rows) { multiply_rows(shape, rows, a_data, b_data, c_data); });
}

}  // namespace overlap
