// Typed GEMMs of cuBLAS: cuBLAS Library, "cublas<t>gemm()".
#include <cuda_fp16.h>

#include "cublas_test.hpp"

namespace semantics {
namespace {

using CublasTypesTest = GpuTest;

/// 2 A B + 3 C with A 3 x 2 and B, transposed, 2 x 2; all are integers times `unit`.
template <class T, class Gemm>
std::vector<double> product_by_name(Gemm gemm, double unit) {
  const auto numbers = [unit](std::initializer_list<double> values) {
    std::vector<T> result;
    for (const double value : values) result.push_back(T(value * unit));
    return result;
  };
  const DeviceArray<T> a(numbers({1, 2, 3, 4, 5, 6})), b(numbers({1, 0, 2, -1}));
  const DeviceArray<T> c(numbers({1, 1, 1, 1, 1, 1}));
  const T alpha = T(2.0), beta = T(3.0);
  const Blas blas;
  EXPECT_EQ(
      gemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, 3, 2, 2, &alpha, a.data(), 3, b.data(), 2, &beta, c.data(), 3),
      CUBLAS_STATUS_SUCCESS);
  using Exact = std::conditional_t<std::is_same_v<T, double>, double, float>;  // half converts to float
  std::vector<double> result;
  for (const T value : c.values()) result.push_back(static_cast<Exact>(value));
  return result;
}

TEST_F(CublasTypesTest, HalfAndDouble) {
  constexpr double kUnit = 1 + 1.0 / (1ll << 25);  // not representable as float
  const auto doubles = product_by_name<double>(cublasDgemm, kUnit);
  const auto halves = product_by_name<__half>(cublasHgemm, 1);
  const double sums[] = {9, 12, 15, -4, -5, -6};
  for (std::size_t i = 0; i < std::size(sums); ++i) {
    EXPECT_NEAR(doubles[i], 2 * sums[i] * kUnit * kUnit + 3 * kUnit, 1e-13);
    EXPECT_EQ(halves[i], 2 * sums[i] + 3);
  }
}

}  // namespace
}  // namespace semantics
