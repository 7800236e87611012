// Matrix products in float or double on the host: what virtual cuBLAS computes with. Column-major, as BLAS
// has it.
#pragma once

#ifndef VGPU_OPENBLAS
#define VGPU_OPENBLAS 0
#endif

namespace vgpu {

/// C = op(A) op(B), with op(A) m x k, op(B) k x n, C m x n; ld: elements from one column to the next. k > 0.
template <class Real>
struct RealProduct {
  bool transpose_a, transpose_b;
  int m, n, k;
  const Real* a;
  int lda;
  const Real* b;
  int ldb;
  Real* c;
  int ldc;
};

/// By product_method().
///@{
void multiply(const RealProduct<float>& product);
void multiply(const RealProduct<double>& product);
///@}

/// The same by a loop of our own. Adds the terms of each element in the order of k.
template <class Real>
void multiply_by_loop(const RealProduct<Real>& product);
/// Only if VGPU_OPENBLAS is 1.
void multiply_by_openblas(const RealProduct<float>& product);
void multiply_by_openblas(const RealProduct<double>& product);

}  // namespace vgpu
