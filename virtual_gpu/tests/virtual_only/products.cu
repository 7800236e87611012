// Virtual cuBLAS beyond the reference: wrong programs, rejected calls, equal results of both methods.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "blas.hpp"
#include "libraries/cublas/float_product.hpp"

namespace virtual_only {
namespace {

using vgpu::ProductMethod;

class ProductsTest : public VirtualTest {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    method = vgpu::product_method();
  }
  void TearDown() override {
    vgpu::use_product_method(method);
    VirtualTest::TearDown();
  }
  ProductMethod method{};
};

// ---- both methods ---------------------------------------------------------------------------------------

template <class Real>
std::vector<Real> integers(std::size_t count, std::mt19937& random) {
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(static_cast<int>(random() % 17) - 8);
  return values;
}

template <class Real>
void compare_loop_with_openblas() {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const auto size = [&] { return static_cast<int>(1 + random() % (i < 100 ? 20 : 150)); };
    vgpu::RealProduct<Real> p{
        random() % 2 == 0, random() % 2 == 0, size(), size(), size(), nullptr, 0, nullptr, 0, nullptr, 0};
    p.lda = (p.transpose_a ? p.k : p.m) + static_cast<int>(random() % 3);
    p.ldb = (p.transpose_b ? p.n : p.k) + static_cast<int>(random() % 3);
    p.ldc = p.m + static_cast<int>(random() % 3);
    const std::vector<Real> a = integers<Real>(std::size_t(p.lda) * (p.transpose_a ? p.m : p.k), random);
    const std::vector<Real> b = integers<Real>(std::size_t(p.ldb) * (p.transpose_b ? p.k : p.n), random);
    std::vector<Real> expected(std::size_t(p.ldc) * p.n, -1), loop = expected, library = expected;
    for (int column = 0; column < p.n; ++column) {
      for (int row = 0; row < p.m; ++row) {
        double sum = 0;
        for (int k = 0; k < p.k; ++k) {
          sum += static_cast<double>(p.transpose_a ? a[row * p.lda + k] : a[k * p.lda + row]) *
                 (p.transpose_b ? b[k * p.ldb + column] : b[column * p.ldb + k]);
        }
        expected[column * p.ldc + row] = static_cast<Real>(sum);
      }
    }
    p.a = a.data(), p.b = b.data(), p.c = loop.data();
    vgpu::multiply_by_loop(p);
    ASSERT_EQ(loop, expected) << p.m << " x " << p.n << " x " << p.k;
    p.c = library.data();
    vgpu::multiply(p);  // with OpenBLAS, if available
    ASSERT_EQ(library, expected) << p.m << " x " << p.n << " x " << p.k;
  }
}

TEST_F(ProductsTest, LoopAndOpenBlasGiveTheSame) {
  compare_loop_with_openblas<float>();
  compare_loop_with_openblas<double>();
}

TEST_F(ProductsTest, TheMethodCanBeChosen) {
  vgpu::use_product_method(ProductMethod::kLoop);
  EXPECT_EQ(vgpu::product_method(), ProductMethod::kLoop);
  __half* c = halves(6);
  require(multiply(new_blas(), 2, 3, 4, halves(8, 1), halves(12, 2), c));
  EXPECT_EQ(floats(c, 6), std::vector<float>(6, 8));
  if (method == ProductMethod::kLoop) {  // built without OpenBLAS
    EXPECT_THROW(vgpu::use_product_method(ProductMethod::kOpenBlas), std::logic_error);
  }
}

/// Ends the process: with 0 if OpenBLAS is not in its memory.
void exit_by_openblas() {
  std::ifstream maps("/proc/self/maps");
  const std::string memory{std::istreambuf_iterator<char>(maps), {}};
  std::exit(memory.find("openblas") == std::string::npos ? 0 : 1);
}

TEST(ProductsDeathTest, OpenBlasIsLoadedAtTheFirstProduct) {
  GTEST_FLAG_SET(death_test_style,
                 "threadsafe");  // a process of its own, without the products of other tests
  EXPECT_EXIT(exit_by_openblas(), testing::ExitedWithCode(0), "");
  if (vgpu::product_method() == ProductMethod::kLoop) return;  // built without OpenBLAS
  const auto multiply_first = [] {
    const float a = 2, b = 3;
    float c = 0;
    vgpu::multiply(vgpu::RealProduct<float>{false, false, 1, 1, 1, &a, 1, &b, 1, &c, 1});
    exit_by_openblas();
  };
  EXPECT_EXIT(multiply_first(), testing::ExitedWithCode(1), "");
}

TEST_F(ProductsTest, NanAndInfinityGoThrough) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const ProductMethod which : {ProductMethod::kLoop, method}) {
    vgpu::use_product_method(which);
    __half* c = halves(4);
    require(multiply(new_blas(), 2, 2, 1, halves(2, kInfinity), halves(2, -1), c));
    EXPECT_EQ(floats(c, 4), std::vector<float>(4, -kInfinity));
    require(multiply(new_blas(), 2, 2, 1, halves(2, kInfinity), halves(2, 0), c));
    for (const float value : floats(c, 4)) EXPECT_TRUE(std::isnan(value));
    require(multiply(new_blas(), 1, 1, 2, halves(2, 200), halves(2, 200), c));  // 80000 overflows half
    EXPECT_EQ(floats(c, 1)[0], kInfinity);
  }
}

// As in BLAS: A and B are not read.
TEST_F(ProductsTest, AlphaZeroOnlyScales) {
  float* c = device_words(1, 3.0f);
  const float zero = 0, two = 2;
  require(
      cublasSgemm(new_blas(), CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &zero, nullptr, 1, nullptr, 1, &two, c, 1));
  EXPECT_EQ(word(c), 6);
}

// ---- missing waits --------------------------------------------------------------------------------------

/// Two streams in time order. The GEMM runs from 2 to 9 us; the other stream's kernel begins at 5 us.
class UnorderedTest : public ProductsTest {
 protected:
  static constexpr int kRows = 64, kColumns = 8, kDepth = 64;
  void SetUp() override {
    ProductsTest::SetUp();
    first = new_stream();
    second = new_stream();
    a = halves(kRows * kDepth, 1);
    b = halves(kDepth * kColumns, 1);
    c = halves(kRows * kColumns, 5);
    delay = halves(kRows * kDepth);
    blas = new_blas(first);
    other_blas = new_blas(second);
  }
  void enqueue() {
    require(multiply(blas, kRows, kColumns, kDepth, a, b, c));
    require(multiply(other_blas, 1, 1, kDepth / 2, delay, delay, delay));
  }
  /// The number of columns of C whose elements are all `value`.
  std::vector<float> results() {
    require(cudaDeviceSynchronize());
    return floats(c, kRows * kColumns);
  }
  cudaStream_t first = nullptr, second = nullptr;
  __half *a = nullptr, *b = nullptr, *c = nullptr, *delay = nullptr;
  cublasHandle_t blas = nullptr, other_blas = nullptr;
};

TEST_F(UnorderedTest, ResultsAreNotThereBeforeTheProductEnds) {
  __half* early = pinned_room<__half>(kRows * kColumns);
  enqueue();
  require(cudaMemcpyAsync(early, c, kRows * kColumns * sizeof(__half), cudaMemcpyDeviceToHost, second));
  EXPECT_EQ(results(), std::vector<float>(kRows * kColumns, kDepth));
  for (int i = 0; i < kRows * kColumns; ++i) ASSERT_EQ(static_cast<float>(early[i]), 5) << i;
}

// The first half of the columns reads A at the start, the other half at the end.
TEST_F(UnorderedTest, OperandsThatChangeMeanwhileSpoilTheResult) {
  enqueue();
  require(cudaMemsetAsync(a, 0, kRows * kDepth * sizeof(__half), second));
  const std::vector<float> result = results();
  for (int i = 0; i < kRows * kColumns; ++i) ASSERT_EQ(result[i], i < kRows * kColumns / 2 ? kDepth : 0) << i;
}

TEST_F(UnorderedTest, FreeUnderAPendingProductIsRefused) {
  __half* there = on_gpu(1, [] { return halves(kDepth * kColumns); });
  require(cudaDeviceEnablePeerAccess(1, 0));
  require(multiply(blas, kRows, kColumns, kDepth, a, there, c));
  require(cudaSetDevice(1));
  expect_failure(cudaFree(there), cudaErrorIllegalAddress,
                 {"freed under a pending operation", "cuBLAS product 64 x 8 x 64 (f16)", "gpu0/stream1"});
}

// ---- wrong calls ----------------------------------------------------------------------------------------

using CublasMisuseTest = ProductsTest;

TEST_F(CublasMisuseTest, Handles) {
  expect_failure(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED,
                 {"cublasDestroy: the handle is null"});
  const cublasHandle_t blas = new_blas();
  require(cublasDestroy(blas));
  expect_failure(cublasDestroy(blas), CUBLAS_STATUS_NOT_INITIALIZED, {"does not exist (any more)"});
  expect_failure(multiply(blas, 1, 1, 1, nullptr, nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED,
                 {"cublasGemmEx: this handle does not exist"});
  expect_failure(cublasCreate(nullptr), CUBLAS_STATUS_INVALID_VALUE, {"address of the handle is null"});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a status is no CUDA error";
}

TEST_F(CublasMisuseTest, AnotherGpu) {
  const cublasHandle_t blas = new_blas();
  __half* memory = halves(4);
  require(cudaSetDevice(1));
  const cudaStream_t stream = new_stream();
  expect_failure(cublasSetStream(blas, stream), CUBLAS_STATUS_INVALID_VALUE,
                 {"cublasSetStream: the handle belongs to GPU 0", "gpu1/stream1"});
  expect_failure(multiply(blas, 1, 1, 1, memory, memory, memory), CUBLAS_STATUS_EXECUTION_FAILED,
                 {"belongs to GPU 0, but GPU 1 is current"});
  require(cudaSetDevice(0));
  EXPECT_EQ(multiply(blas, 1, 1, 1, memory, memory, memory), CUBLAS_STATUS_SUCCESS);
}

TEST_F(CublasMisuseTest, StreamThatIsGone) {
  const cudaStream_t stream = new_stream();
  const cublasHandle_t blas = new_blas(stream);
  __half* memory = halves(4);
  require(cudaStreamDestroy(stream));
  expect_failure(multiply(blas, 1, 1, 1, memory, memory, memory), CUBLAS_STATUS_INVALID_VALUE,
                 {"cublasGemmEx: this stream does not exist"});
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST_F(CublasMisuseTest, SizesAreNamed) {
  const cublasHandle_t blas = new_blas();
  const float one = 1, zero = 0;
  float* data = device_words(16, 0.0f);
  const auto call = [&](cublasOperation_t op_a, int m, int n, int k, int lda, int ldb, int ldc) {
    return cublasSgemm(blas, op_a, CUBLAS_OP_N, m, n, k, &one, data, lda, data, ldb, &zero, data, ldc);
  };
  constexpr auto kN = CUBLAS_OP_N;
  expect_failure(call(kN, -1, 1, 1, 1, 1, 1), CUBLAS_STATUS_INVALID_VALUE, {"cublasSgemm: m is -1"});
  expect_failure(call(kN, 1, 1, -3, 1, 1, 1), CUBLAS_STATUS_INVALID_VALUE, {"k is -3"});
  expect_failure(call(kN, 4, 3, 2, 3, 2, 4), CUBLAS_STATUS_INVALID_VALUE,
                 {"lda is 3, less than the 4 rows of A"});
  expect_failure(call(CUBLAS_OP_T, 4, 3, 2, 1, 2, 4), CUBLAS_STATUS_INVALID_VALUE,
                 {"lda is 1, less than the 2 rows of A"});
  expect_failure(call(kN, 4, 3, 2, 4, 1, 4), CUBLAS_STATUS_INVALID_VALUE, {"ldb is 1, less than the 2 rows"});
  expect_failure(call(kN, 4, 3, 2, 4, 2, 3), CUBLAS_STATUS_INVALID_VALUE, {"ldc is 3, less than the 4 rows"});
  expect_failure(call(static_cast<cublasOperation_t>(3), 1, 1, 1, 1, 1, 1), CUBLAS_STATUS_INVALID_VALUE,
                 {"transa is 3"});
  expect_failure(multiply(blas, 1, 1, 1, nullptr, nullptr, nullptr), CUBLAS_STATUS_INVALID_VALUE,
                 {"C is null"});
  expect_failure(cublasSgemm(blas, kN, kN, 1, 1, 1, nullptr, data, 1, data, 1, &zero, data, 1),
                 CUBLAS_STATUS_INVALID_VALUE, {"alpha or beta is null"});
}

TEST_F(CublasMisuseTest, WhatIsNotSupportedIsNamed) {
  const cublasHandle_t blas = new_blas();
  const float one = 1, zero = 0;
  float* data = device_words(16, 0.0f);
  const auto call = [&](cudaDataType a, cudaDataType b, cudaDataType c, int compute, int algorithm) {
    return cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, data, a, 1, data, b, 1, &zero, data, c,
                        1, static_cast<cublasComputeType_t>(compute),
                        static_cast<cublasGemmAlgo_t>(algorithm));
  };
  constexpr auto kNo = CUBLAS_STATUS_NOT_SUPPORTED;
  expect_failure(call(CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, 68, -1), kNo, {"A in f16, B in bf16, C in f32"});
  expect_failure(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, 68, -1), kNo, {"C in f16 is not supported"});
  expect_failure(call(static_cast<cudaDataType>(3), CUDA_R_32F, CUDA_R_32F, 68, -1), kNo,
                 {"type 3 of matrix A is not supported on virtual GPUs"});
  expect_failure(call(CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 64, -1), kNo, {"compute type 64"});
  expect_failure(call(CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 68, 5), kNo, {"algorithm 5"});
  expect_failure(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE), kNo, {"CUBLAS_POINTER_MODE_DEVICE"});
  expect_failure(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH), kNo, {"CUBLAS_TF32_TENSOR_OP_MATH"});
  expect_failure(cublasSetMathMode(blas, static_cast<cublasMath_t>(1)), kNo, {"math mode 1"});
}

TEST_F(CublasMisuseTest, Workspaces) {
  const cublasHandle_t blas = new_blas();
  char* memory = device_room<char>(1024);
  expect_failure(cublasSetWorkspace(blas, memory + 1, 256), CUBLAS_STATUS_INVALID_VALUE, {"aligned to 256"});
  expect_failure(cublasSetWorkspace(blas, memory, 1025), CUBLAS_STATUS_INVALID_VALUE,
                 {"no memory of GPU 0 with 1025 bytes", "cudaMalloc of 1024 bytes"});
  EXPECT_EQ(cublasSetWorkspace(blas, memory, 1024), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace(blas, nullptr, 0), CUBLAS_STATUS_SUCCESS);
}

/// Runs a GEMM of three matrices, which must fail, and returns the message.
std::string fault(const __half* a, const __half* b, __half* c, int m = 4, int n = 4, int k = 4) {
  require(multiply(new_blas(), m, n, k, a, b, c));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return vgpu::last_error_detail();
}

TEST_F(CublasMisuseTest, OperandsThatAreTooSmall) {
  expect_parts(fault(halves(16), halves(15), halves(16)), {"cuBLAS product 4 x 4 x 4 (f16) in gpu0/stream0",
                                                           "matrix B has 32 bytes and goes beyond its memory",
                                                           "inside a cudaMalloc of 30 bytes on GPU 0"});
}
TEST_F(CublasMisuseTest, ResultThatIsTooSmall) {
  expect_parts(fault(halves(16), halves(16), halves(15)), {"matrix C has 32 bytes"});
}
TEST_F(CublasMisuseTest, OperandOfTheHost) {
  std::vector<__half> host(16);
  expect_parts(fault(host.data(), halves(16), halves(16)), {"matrix A lies in no memory"});
}
TEST_F(CublasMisuseTest, OperandOfAPeerWithoutAccess) {
  const __half* there = on_gpu(1, [] { return halves(16); });
  expect_parts(fault(halves(16), there, halves(16)),
               {"matrix B lies on GPU 1, to which GPU 0 has no access"});
}
TEST_F(CublasMisuseTest, OperandOfAPeerWithAccess) {
  const __half* there = on_gpu(1, [] { return halves(16, 2); });
  require(cudaDeviceEnablePeerAccess(1, 0));
  __half* c = halves(16);
  require(multiply(new_blas(), 4, 4, 4, halves(16, 1), there, c));
  EXPECT_EQ(floats(c, 16), std::vector<float>(16, 8));
}

TEST_F(CublasMisuseTest, AfterAFaultCallsFail) {
  std::vector<__half> host(16);
  const cublasHandle_t blas = new_blas();
  __half* memory = halves(16);
  fault(host.data(), memory, memory);
  EXPECT_EQ(multiply(blas, 1, 1, 1, memory, memory, memory), CUBLAS_STATUS_EXECUTION_FAILED);
}

}  // namespace
}  // namespace virtual_only
