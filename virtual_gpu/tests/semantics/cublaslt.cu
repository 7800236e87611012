// GEMMs of cuBLASLt: the cuBLAS Library reference, "Using the cublasLt API". Column-major.
#include <cublasLt.h>
#include <cuda_fp16.h>

#include <random>

#include "cublas_test.hpp"

namespace semantics {
namespace {

/// Descriptors of a column-major GEMM in f16; op(A) is m x k, op(B) k x n.
class LtProduct {
 public:
  LtProduct(int m, int n, int k, bool transpose_a, bool transpose_b) {
    require(cublasLtCreate(&handle));
    require(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto set_operation = [this](cublasLtMatmulDescAttributes_t attribute, bool transpose) {
      const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
      require(cublasLtMatmulDescSetAttribute(description, attribute, &operation, sizeof operation));
    };
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b);
    a = layout(transpose_a ? k : m, transpose_a ? m : k);
    b = layout(transpose_b ? n : k, transpose_b ? k : n);
    c = layout(m, n);
    require(cublasLtMatmulPreferenceCreate(&preference));
    const std::uint64_t no_workspace = 0;
    require(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &no_workspace, sizeof no_workspace));
  }
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;
  ~LtProduct() {
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutDestroy(a), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutDestroy(b), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutDestroy(c), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
  }

  /// The proposed algorithms, at most 4. (No vector, because nvcc 13.0 fails on one of an unnamed struct.)
  struct Proposed {
    cublasLtMatmulHeuristicResult_t results[4];
    int count = 0;
  };
  Proposed proposed() const {
    Proposed found{};
    require(cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, c, c, preference, 4, found.results,
                                           &found.count));
    return found;
  }

  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

 private:
  static cublasLtMatrixLayout_t layout(int rows, int columns) {
    cublasLtMatrixLayout_t made = nullptr;
    require(cublasLtMatrixLayoutCreate(&made, CUDA_R_16F, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), rows));
    return made;
  }
};

class CublasLtTest : public GpuTest {
 protected:
  /// Multiplies small integers by each proposed algorithm, and compares all elements.
  void expect_right(int m, int n, int k, bool transpose_a, bool transpose_b) {
    std::mt19937 random(static_cast<unsigned>(m + 3 * n + 5 * k));
    const auto numbers = [&random](int count) {
      std::vector<__half> values(static_cast<std::size_t>(count));
      for (__half& value : values)
        value = __float2half(static_cast<float>(static_cast<int>(random() % 3) - 1));
      return values;
    };
    const std::vector<__half> a = numbers(m * k), b = numbers(k * n);
    const DeviceArray<__half> a_there(a), b_there(b);
    const LtProduct product(m, n, k, transpose_a, transpose_b);
    const LtProduct::Proposed proposed = product.proposed();
    ASSERT_GE(proposed.count, 1);
    ASSERT_LE(proposed.count, 4);
    const float alpha = 1, beta = 0;
    for (int i = 0; i < proposed.count; ++i) {
      const cublasLtMatmulHeuristicResult_t& each = proposed.results[i];
      ASSERT_EQ(each.state, CUBLAS_STATUS_SUCCESS);
      EXPECT_EQ(each.workspaceSize, 0u);
      const DeviceArray<__half> c_there(static_cast<std::size_t>(m * n), __float2half(7));
      require(cublasLtMatmul(product.handle, product.description, &alpha, a_there.data(), product.a,
                             b_there.data(), product.b, &beta, c_there.data(), product.c, c_there.data(),
                             product.c, &each.algo, nullptr, 0, nullptr));
      require(cudaDeviceSynchronize());
      const std::vector<__half> found = c_there.values();
      for (int column = 0; column < n; ++column) {
        for (int row = 0; row < m; ++row) {
          float sum = 0;
          for (int l = 0; l < k; ++l) {
            sum += __half2float(a[static_cast<std::size_t>(transpose_a ? row * k + l : l * m + row)]) *
                   __half2float(b[static_cast<std::size_t>(transpose_b ? l * n + column : column * k + l)]);
          }
          ASSERT_EQ(__half2float(found[static_cast<std::size_t>(column * m + row)]), sum)
              << row << ", " << column;
        }
      }
    }
  }
};

TEST_F(CublasLtTest, EachAlgorithmThatIsProposedIsRight) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      expect_right(64, 32, 48, transpose_a, transpose_b);
      expect_right(8, 72, 24, transpose_a, transpose_b);
    }
  }
}

TEST_F(CublasLtTest, SizesThatDoNotFitAreRefused) {
  const LtProduct product(64, 32, 48, false, false), other(64, 32, 40, false, false);
  const DeviceArray<__half> memory(std::vector<__half>(64 * 64));
  const float alpha = 1, beta = 0;
  EXPECT_NE(cublasLtMatmul(product.handle, product.description, &alpha, memory.data(), product.a,
                           memory.data(), other.b, &beta, memory.data(), product.c, memory.data(), product.c,
                           nullptr, nullptr, 0, nullptr),
            CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace semantics
