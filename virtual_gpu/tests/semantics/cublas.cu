// GEMMs of cuBLAS: the cuBLAS Library reference on cublasGemmEx() and related calls. Column-major.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>
#include <random>

#include "cublas_test.hpp"

namespace semantics {
namespace {

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<__half> = CUDA_R_16F;
template <>
constexpr cudaDataType kType<__nv_bfloat16> = CUDA_R_16BF;

/// Integers from -1 to 1: their products and sums are exact.
template <class T>
std::vector<T> small_integers(std::size_t count, unsigned int seed) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = T(static_cast<float>(static_cast<int>(random() % 3) - 1));
  return values;
}
template <class T>
std::vector<float> as_floats(const std::vector<T>& values) {
  std::vector<float> floats;
  for (const T& value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

struct Shape {
  int m, n, k;
  int more_a, more_b, more_c;  // padding after each column, in elements
};
struct Factors {
  float alpha, beta;
};

/// A GEMM of integers and its expected result.
template <class Input, class Output>
class Case {
 public:
  Case(cublasOperation_t op_a, cublasOperation_t op_b, Shape shape)
      : op_a_(op_a),
        op_b_(op_b),
        shape_(shape),
        lda_(std::max(1, (op_a == CUBLAS_OP_N ? shape.m : shape.k) + shape.more_a)),
        ldb_(std::max(1, (op_b == CUBLAS_OP_N ? shape.k : shape.n) + shape.more_b)),
        ldc_(shape.m + shape.more_c),
        a_(small_integers<Input>(std::size_t(lda_) * (op_a == CUBLAS_OP_N ? shape.k : shape.m) + 1, 1)),
        b_(small_integers<Input>(std::size_t(ldb_) * (op_b == CUBLAS_OP_N ? shape.n : shape.k) + 1, 2)),
        c_(small_integers<Output>(std::size_t(ldc_) * shape.n + 1, 3)) {}

  std::vector<float> expected(Factors factors) const {
    std::vector<float> result = as_floats(c_);
    for (int j = 0; j < shape_.n; ++j) {
      for (int i = 0; i < shape_.m; ++i) {
        float sum = 0;
        for (int k = 0; k < shape_.k; ++k) {
          sum += static_cast<float>(op_a_ == CUBLAS_OP_N ? a_[i + k * lda_] : a_[k + i * lda_]) *
                 static_cast<float>(op_b_ == CUBLAS_OP_N ? b_[k + j * ldb_] : b_[j + k * ldb_]);
        }
        float& element = result[i + j * ldc_];
        element = factors.alpha * sum + factors.beta * element;
      }
    }
    return result;
  }
  std::vector<float> computed(Factors factors) const {
    const Blas blas;
    const DeviceArray<Input> a(a_), b(b_);
    const DeviceArray<Output> c(c_);
    EXPECT_EQ(cublasGemmEx(blas, op_a_, op_b_, shape_.m, shape_.n, shape_.k, &factors.alpha, a.data(),
                           kType<Input>, lda_, b.data(), kType<Input>, ldb_, &factors.beta, c.data(),
                           kType<Output>, ldc_, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    return as_floats(c.values());
  }

 private:
  cublasOperation_t op_a_, op_b_;
  Shape shape_;
  int lda_, ldb_, ldc_;
  std::vector<Input> a_, b_;
  std::vector<Output> c_;
};

template <class In, class Out>
struct TypesOf {
  using Input = In;
  using Output = Out;
};
template <class T>
class CublasTest : public GpuTest {};
using InputsAndOutputs =
    testing::Types<TypesOf<__half, __half>, TypesOf<__half, float>, TypesOf<__nv_bfloat16, __nv_bfloat16>,
                   TypesOf<__nv_bfloat16, float>, TypesOf<float, float>>;
TYPED_TEST_SUITE(CublasTest, InputsAndOutputs);

// The padding between columns of C must not change; it is compared too.
TYPED_TEST(CublasTest, AllTransposes) {
  using Product = Case<typename TypeParam::Input, typename TypeParam::Output>;
  for (const auto op_a : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
    for (const auto op_b : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
      for (const Shape shape : {Shape{1, 1, 1, 0, 0, 0}, Shape{3, 5, 7, 0, 0, 0}, Shape{17, 33, 65, 3, 1, 5},
                                Shape{1, 40, 9, 0, 0, 2}, Shape{40, 1, 9, 1, 2, 0}}) {
        const Product product(op_a, op_b, shape);
        ASSERT_EQ(product.computed({1, 0}), product.expected({1, 0}))
            << op_a << op_b << ": " << shape.m << " x " << shape.n << " x " << shape.k;
      }
    }
  }
}

TYPED_TEST(CublasTest, AlphaAndBeta) {
  using Product = Case<typename TypeParam::Input, typename TypeParam::Output>;
  for (const Factors factors : {Factors{1, 1}, Factors{2, -1}, Factors{-0.5f, 0.5f}, Factors{1, 0.25f}}) {
    const Product product(CUBLAS_OP_N, CUBLAS_OP_T, {33, 18, 20, 1, 0, 3});
    ASSERT_EQ(product.computed(factors), product.expected(factors)) << factors.alpha << ", " << factors.beta;
  }
}

TYPED_TEST(CublasTest, WithoutTermsCIsScaled) {
  using Product = Case<typename TypeParam::Input, typename TypeParam::Output>;
  for (const Factors factors : {Factors{1, 0.5f}, Factors{1, 0}}) {
    const Product product(CUBLAS_OP_N, CUBLAS_OP_N, {9, 5, 0, 0, 1, 2});
    ASSERT_EQ(product.computed(factors), product.expected(factors)) << factors.beta;
  }
}

TYPED_TEST(CublasTest, WithBetaZeroCIsNotRead) {
  using Input = typename TypeParam::Input;
  using Output = typename TypeParam::Output;
  const Blas blas;
  const DeviceArray<Input> ones(64, Input(1.0f));
  const DeviceArray<Output> c(64, Output(std::numeric_limits<float>::quiet_NaN()));
  const float one = 1, zero = 0;
  CUBLAS_OK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, ones.data(), kType<Input>, 8,
                         ones.data(), kType<Input>, 8, &zero, c.data(), kType<Output>, 8, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT));
  EXPECT_EQ(as_floats(c.values()), std::vector<float>(64, 8));
}

// Sums in half would stop at 2048, in bfloat16 at 256. 2051 lies between the halves 2050 and 2052.
TYPED_TEST(CublasTest, SumsAreInFloatAndRoundedOnce) {
  using Input = typename TypeParam::Input;
  using Output = typename TypeParam::Output;
  const Blas blas;
  const float one = 1, zero = 0;
  for (const int k : {257, 2051, 4096}) {
    const DeviceArray<Input> ones(k, Input(1.0f));
    const DeviceArray<Output> c(1);
    CUBLAS_OK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, k, &one, ones.data(), kType<Input>, k,
                           ones.data(), kType<Input>, k, &zero, c.data(), kType<Output>, 1,
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    EXPECT_EQ(static_cast<float>(c.value()), static_cast<float>(Output(static_cast<float>(k))));
  }
}

TYPED_TEST(CublasTest, Batches) {
  using Input = typename TypeParam::Input;
  using Output = typename TypeParam::Output;
  constexpr int kSize = 6, kBatch = 3, kSquare = kSize * kSize;
  constexpr long long kStrideC = kSquare + 5;
  const Blas blas;
  const std::vector<Input> a = small_integers<Input>(kBatch * kSquare, 1);
  const std::vector<Input> b = small_integers<Input>(kSquare, 2);
  const DeviceArray<Input> device_a(a), device_b(b);
  const DeviceArray<Output> c(kBatch * kStrideC, Output(7.0f));
  const float one = 1, zero = 0;
  CUBLAS_OK(cublasGemmStridedBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &one,
                                       device_a.data(), kType<Input>, kSize, kSquare, device_b.data(),
                                       kType<Input>, kSize, 0, &zero, c.data(), kType<Output>, kSize,
                                       kStrideC, kBatch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  std::vector<float> expected(kBatch * kStrideC, 7);
  for (int batch = 0; batch < kBatch; ++batch) {
    for (int i = 0; i < kSquare; ++i) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k) {
        sum += static_cast<float>(a[batch * kSquare + k * kSize + i % kSize]) *
               static_cast<float>(b[i / kSize * kSize + k]);
      }
      expected[batch * kStrideC + i] = sum;
    }
  }
  EXPECT_EQ(as_floats(c.values()), expected);
}

// Checks on the host, without a GPU.
TEST(CublasStatusTest, StatusesHaveNames) {
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS");
  EXPECT_STREQ(cublasGetStatusString(CUBLAS_STATUS_SUCCESS), "success");
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_EXECUTION_FAILED), "CUBLAS_STATUS_EXECUTION_FAILED");
  EXPECT_STREQ(cublasGetStatusString(CUBLAS_STATUS_EXECUTION_FAILED),
               "the function failed to launch on the GPU");
  EXPECT_STREQ(cublasGetStatusName(static_cast<cublasStatus_t>(2)), "unrecognized status");
}

TEST(CublasStatusTest, WithoutAHandleNothingWorks) {
  const float one = 1;
  EXPECT_EQ(
      cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, nullptr, 1, nullptr, 1, &one, nullptr, 1),
      CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
}

/// Square GEMMs of floats.
class CublasCallTest : public GpuTest {
 protected:
  static constexpr int kSize = 16, kSquare = kSize * kSize;
  static cublasStatus_t multiply(cublasHandle_t blas, const float* a, const float* b, float* c) {
    static constexpr float kOne = 1, kZero = 0;
    return cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &kOne, a, kSize, b, kSize, &kZero,
                       c, kSize);
  }
};

// Without rows or columns the call does nothing and reads no operand.
TEST_F(CublasCallTest, EmptyProducts) {
  const Blas blas;
  const float one = 1, zero = 0;
  CUBLAS_OK(
      cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &one, nullptr, 1, nullptr, 4, &zero, nullptr, 1));
  CUBLAS_OK(
      cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 0, 4, &one, nullptr, 4, nullptr, 4, &zero, nullptr, 4));
}

TEST_F(CublasCallTest, WrongSizes) {
  const Blas blas;
  const DeviceArray<float> memory(kSquare, 1.0f);
  const float one = 1, zero = 0;
  float* data = memory.data();
  struct Sizes {
    cublasOperation_t op_a, op_b;
    int m, n, k, lda, ldb, ldc;
  };
  constexpr auto kN = CUBLAS_OP_N, kT = CUBLAS_OP_T;
  for (const Sizes& s :
       {Sizes{kN, kN, -1, 4, 4, 4, 4, 4}, Sizes{kN, kN, 4, -1, 4, 4, 4, 4}, Sizes{kN, kN, 4, 4, -1, 4, 4, 4},
        Sizes{kN, kN, 4, 3, 2, 3, 2, 4}, Sizes{kT, kN, 4, 3, 2, 1, 2, 4}, Sizes{kN, kN, 4, 3, 2, 4, 1, 4},
        Sizes{kN, kT, 4, 3, 2, 4, 2, 4}, Sizes{kN, kN, 4, 3, 2, 4, 2, 3}}) {
    EXPECT_EQ(
        cublasSgemm(blas, s.op_a, s.op_b, s.m, s.n, s.k, &one, data, s.lda, data, s.ldb, &zero, data, s.ldc),
        CUBLAS_STATUS_INVALID_VALUE)
        << s.m << " x " << s.n << " x " << s.k << ", " << s.lda << ", " << s.ldb << ", " << s.ldc;
  }
  EXPECT_EQ(memory.values(), std::vector<float>(kSquare, 1));
}

TEST_F(CublasCallTest, TypesThatDoNotGoTogether) {
  const Blas blas;
  const DeviceArray<float> memory(kSquare, 1.0f);
  const float one = 1, zero = 0;
  EXPECT_EQ(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, memory.data(), CUDA_R_16F, 4,
                         memory.data(), CUDA_R_16BF, 4, &zero, memory.data(), CUDA_R_32F, 4,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasCallTest, Handles) {
  const Blas blas;
  int version = 0;
  CUBLAS_OK(cublasGetVersion(blas, &version));
  EXPECT_GE(version, 120000);
  const Stream mine;
  cudaStream_t stream = mine;
  CUBLAS_OK(cublasGetStream(blas, &stream));
  EXPECT_EQ(stream, nullptr);
  CUBLAS_OK(cublasSetStream(blas, mine));
  CUBLAS_OK(cublasGetStream(blas, &stream));
  EXPECT_EQ(stream, mine);
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_DEVICE;
  CUBLAS_OK(cublasGetPointerMode(blas, &mode));
  EXPECT_EQ(mode, CUBLAS_POINTER_MODE_HOST);
  cublasMath_t math = CUBLAS_PEDANTIC_MATH;
  CUBLAS_OK(cublasGetMathMode(blas, &math));
  EXPECT_EQ(math, CUBLAS_DEFAULT_MATH);
  CUBLAS_OK(cublasSetMathMode(blas, CUBLAS_PEDANTIC_MATH));
  CUBLAS_OK(cublasGetMathMode(blas, &math));
  EXPECT_EQ(math, CUBLAS_PEDANTIC_MATH);
  const DeviceArray<char> workspace(1 << 20);
  CUBLAS_OK(cublasSetWorkspace(blas, workspace.data(), workspace.bytes()));
}

// The call only enqueues: the GEMM reads its operands when it runs, in stream order; the call reads alpha.
TEST_F(CublasCallTest, ProductsAreAsynchronous) {
  const Blas blas;
  const Stream stream, other;
  const DeviceArray<float> a(kSquare, 1.0f), b(kSquare, 1.0f), c(kSquare, 0.0f);
  const PinnedArray<float> two(1, 2.0f);
  CUBLAS_OK(cublasSetStream(blas, stream));
  CUBLAS_OK(multiply(blas, a.data(), b.data(), c.data()));  // loads kernels before the gate closes
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaMemset(c.data(), 0, c.bytes()));
  CUDA_OK(cudaDeviceSynchronize());
  {
    Gate gate(stream);
    float alpha = 3, beta = 0;
    CUBLAS_OK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &alpha, a.data(), kSize,
                          b.data(), kSize, &beta, c.data(), kSize));
    alpha = beta = 5;
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    set<float><<<1, 1, 0, other>>>(b.data(), 2);  // the first element
    CUDA_OK(cudaStreamSynchronize(other));
    copy_one<float><<<1, 1, 0, stream>>>(a.data(), c.data());
    gate.drain(stream);
  }
  std::vector<float> expected(kSquare, 3.0f * kSize);
  for (int i = 0; i < kSize; ++i) expected[i] += 3;
  EXPECT_EQ(c.values(), expected);
  EXPECT_EQ(a.value(), 3.0f * kSize + 3);
}

// A handle's default stream is the legacy one: it and the blocking streams wait for each other.
TEST_F(CublasCallTest, DefaultStream) {
  const Blas blas;
  const Stream blocking(cudaStreamDefault);
  const DeviceArray<float> a(kSquare, 1.0f), b(kSquare, 0.0f), c(kSquare, 0.0f);
  CUBLAS_OK(multiply(blas, a.data(), b.data(), c.data()));
  set_late<float><<<1, 1, 0, blocking>>>(b.data(), 1);
  CUBLAS_OK(multiply(blas, a.data(), b.data(), c.data()));
  copy_one<float><<<1, 1, 0, blocking>>>(a.data() + 1, c.data());
  CUDA_OK(cudaStreamSynchronize(blocking));
  EXPECT_EQ(a.values()[1], 1);
}

using CublasTwoGpusTest = TwoGpusTest;

TEST_F(CublasTwoGpusTest, EachGpuHasItsHandle) {
  std::vector<float> results;
  for (int gpu = 0; gpu < 2; ++gpu) {
    CUDA_OK(cudaSetDevice(gpu));
    const Blas blas;
    const DeviceArray<float> a(1, 3.0f), c(1, 0.0f);
    const float alpha = static_cast<float>(gpu + 1), zero = 0;
    CUBLAS_OK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, a.data(), 1, a.data(), 1, &zero,
                          c.data(), 1));
    results.push_back(c.value());
  }
  EXPECT_EQ(results, (std::vector<float>{9, 18}));
}

TEST_F(CublasCallTest, MatricesAndVectorsBetweenHostAndGpu) {
  const float from[6] = {1, 2, 3, 4, 5, 6};
  float matrix[4] = {}, vector[2] = {};
  float* device = nullptr;
  require(cudaMalloc(&device, 8 * sizeof(float)));
  EXPECT_EQ(cublasSetMatrix(2, 2, sizeof(float), from, 3, device, 4), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMatrix(2, 2, sizeof(float), device, 4, matrix, 2), CUBLAS_STATUS_SUCCESS);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(matrix[i], from[i / 2 * 3 + i % 2]);
  EXPECT_EQ(cublasSetVector(2, sizeof(float), from, 2, device, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetVector(2, sizeof(float), device, 1, vector, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(vector[1], from[2]);
  require(cudaFree(device));
}

}  // namespace
}  // namespace semantics
