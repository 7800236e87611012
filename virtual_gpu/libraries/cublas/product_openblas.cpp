#include <cstdlib>

#include "libraries/cublas/float_product.hpp"
#include "race/happens_before.hpp"

// Declared here, not included: its header's place differs from system to system.
extern "C" {
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
            const double* beta, double* c, const int* ldc);
void openblas_set_num_threads(int threads);
}

namespace vgpu {
namespace {

/// One thread by default, because idle ones spin and tests run in parallel. Always one under ThreadSanitizer,
/// which does not see how OpenBLAS's threads synchronise.
bool set_threads() {
  if (hb::kEnabled || std::getenv("OPENBLAS_NUM_THREADS") == nullptr) openblas_set_num_threads(1);
  return true;
}

template <class Real, class Gemm>
void multiply(Gemm gemm, const RealProduct<Real>& p) {
  [[maybe_unused]] static const bool threads_are_set = set_threads();
  const Real one = 1, zero = 0;
  gemm(p.transpose_a ? "T" : "N", p.transpose_b ? "T" : "N", &p.m, &p.n, &p.k, &one, p.a, &p.lda, p.b, &p.ldb,
       &zero, p.c, &p.ldc);
}

}  // namespace

void multiply_by_openblas(const RealProduct<float>& p) { multiply(sgemm_, p); }
void multiply_by_openblas(const RealProduct<double>& p) { multiply(dgemm_, p); }

}  // namespace vgpu
