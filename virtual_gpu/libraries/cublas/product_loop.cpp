#include <algorithm>
#include <vector>

#include "libraries/cublas/float_product.hpp"

namespace vgpu {
namespace {

// Register tiles of C of 8 x 4. A is packed into strips of 8 rows, B into strips of 4 columns, contiguous
// along k and padded with zeros.
constexpr int kRows = 8, kColumns = 4;
constexpr int kBlockRows = 64;  // so many rows of A stay in the cache while all of B passes
template <class Real>
using Rows [[gnu::vector_size(kRows * sizeof(Real))]] = Real;

template <class Real>
struct AlignedRows {  // the attribute of a type is lost where that is a template's argument
  Rows<Real> values;
};

int strips(int size, int width) { return (size + width - 1) / width; }

/// `matrix` has element (i, k) at [i * along + k * step]. Strip s holds rows s * width and following.
template <class Real>
void pack(const Real* matrix, std::ptrdiff_t along, std::ptrdiff_t step, int size, int width, int depth,
          Real* packed) {
  for (int first = 0; first < size; first += width) {
    for (int k = 0; k < depth; ++k) {
      for (int i = first; i < first + width; ++i)
        *packed++ = i < size ? matrix[i * along + k * step] : Real{};
    }
  }
}

/// One piece of C: k columns of 8 elements times k rows of 4.
template <class Real>
void multiply_strips(const Rows<Real>* a, const Real* b, int depth, Rows<Real> (&sums)[kColumns]) {
  Rows<Real> s0{}, s1{}, s2{}, s3{};  // by name: so they stay in registers
  for (int k = 0; k < depth; ++k, b += kColumns) {
    s0 += a[k] * b[0];
    s1 += a[k] * b[1];
    s2 += a[k] * b[2];
    s3 += a[k] * b[3];
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

}  // namespace

template <class Real>
void multiply_by_loop(const RealProduct<Real>& p) {
  const auto depth = static_cast<std::size_t>(p.k);
  std::vector<AlignedRows<Real>> a(strips(p.m, kRows) * depth);
  std::vector<Real> b(strips(p.n, kColumns) * kColumns * depth);
  pack(p.a, p.transpose_a ? p.lda : 1, p.transpose_a ? 1 : p.lda, p.m, kRows, p.k,
       reinterpret_cast<Real*>(a.data()));
  pack(p.b, p.transpose_b ? 1 : p.ldb, p.transpose_b ? p.ldb : 1, p.n, kColumns, p.k, b.data());

  for (int block = 0; block < p.m; block += kBlockRows) {
    for (int column = 0; column < p.n; column += kColumns) {
      for (int row = block; row < std::min(p.m, block + kBlockRows); row += kRows) {
        Rows<Real> sums[kColumns];
        multiply_strips<Real>(&a[row / kRows * depth].values, &b[column * depth], p.k, sums);
        for (int j = 0; j < std::min(kColumns, p.n - column); ++j) {
          Real* c = p.c + (column + j) * static_cast<std::ptrdiff_t>(p.ldc) + row;
          for (int i = 0; i < std::min(kRows, p.m - row); ++i) c[i] = sums[j][i];
        }
      }
    }
  }
}

template void multiply_by_loop(const RealProduct<float>&);
template void multiply_by_loop(const RealProduct<double>&);

}  // namespace vgpu
