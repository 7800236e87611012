// Matrix products in float on the host: what virtual cuBLAS computes with. Column-major, as BLAS has it.
#pragma once

#ifndef VGPU_OPENBLAS
#define VGPU_OPENBLAS 0
#endif

namespace vgpu {

/// C = op(A) op(B), with op(A) m x k, op(B) k x n, C m x n; ld: elements from one column to the next. k > 0.
struct FloatProduct {
  bool transpose_a, transpose_b;
  int m, n, k;
  const float* a;
  int lda;
  const float* b;
  int ldb;
  float* c;
  int ldc;
};

/// By product_method().
void multiply(const FloatProduct& product);

/// The same by a loop of our own. Adds the terms of each element in the order of k.
void multiply_by_loop(const FloatProduct& product);
/// Only if VGPU_OPENBLAS is 1.
void multiply_by_openblas(const FloatProduct& product);

}  // namespace vgpu
