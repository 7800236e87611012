#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "libraries/cublas/float_product.hpp"
#include "race/happens_before.hpp"

namespace vgpu {
namespace {

/// BLAS's gemm; declared here, because its header's place differs from system to system.
template <class Real>
using Gemm = void(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                  const Real* alpha, const Real* a, const int* lda, const Real* b, const int* ldb,
                  const Real* beta, Real* c, const int* ldc);

/// One thread by default, because idle ones spin and tests run in parallel. Always one under ThreadSanitizer,
/// which does not see how OpenBLAS's threads synchronise. Set before main(), where no other thread reads it.
[[maybe_unused]] const int threads_are_set = setenv("OPENBLAS_NUM_THREADS", "1", hb::kEnabled);

/// Loads OpenBLAS at the first product: other programs need not start its threads and map its memory.
template <class Real>
Gemm<Real>* find(const char* name) {
  static void* const library = dlopen(VGPU_OPENBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("OpenBLAS cannot be loaded: ") + dlerror());
  return reinterpret_cast<Gemm<Real>*>(found);
}

template <class Real>
void multiply(Gemm<Real>* gemm, const RealProduct<Real>& p) {
  const Real one = 1, zero = 0;
  gemm(p.transpose_a ? "T" : "N", p.transpose_b ? "T" : "N", &p.m, &p.n, &p.k, &one, p.a, &p.lda, p.b, &p.ldb,
       &zero, p.c, &p.ldc);
}

}  // namespace

void multiply_by_openblas(const RealProduct<float>& p) {
  static Gemm<float>* const gemm = find<float>("sgemm_");
  multiply(gemm, p);
}

void multiply_by_openblas(const RealProduct<double>& p) {
  static Gemm<double>* const gemm = find<double>("dgemm_");
  multiply(gemm, p);
}

}  // namespace vgpu
