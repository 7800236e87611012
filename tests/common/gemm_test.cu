// Row-major GEMMs by cuBLAS, on any GPUs, against the CPU's reference.
#include "overlap/gpu/gemm.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "element_types.hpp"
#include "overlap/data/data.hpp"
#include "overlap/data/tolerance.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

// Also tiny and uneven sizes, and rows whose bytes are no multiple of 16.
constexpr MatmulShape kShapes[] = {{1, 1, 1},    {1, 7, 3},      {5, 1, 9},        {2, 3, 1},
                                   {17, 31, 13}, {64, 128, 256}, {129, 257, 1000}, {200, 8, 2048}};

struct Handle {
  Handle() { CUBLAS_CHECK(cublasCreate(&handle)); }
  ~Handle() { cublasDestroy(handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cublasHandle_t handle = nullptr;
};

std::vector<double> transposed(const std::vector<double>& matrix, std::int64_t rows, std::int64_t columns) {
  std::vector<double> out;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) out.push_back(matrix[static_cast<std::size_t>(i * columns + j)]);
  }
  return out;
}

// The rows, each padded to `ld` elements with values that must be neither read nor written.
template <typename T>
std::vector<T> padded(const std::vector<double>& matrix, std::int64_t columns, std::int64_t ld) {
  std::vector<T> out;
  for (std::size_t i = 0; i < matrix.size(); i += static_cast<std::size_t>(columns)) {
    for (std::int64_t j = 0; j < ld; ++j) {
      out.push_back(element<T>(j < columns ? matrix[i + static_cast<std::size_t>(j)]
                                           : std::numeric_limits<double>::quiet_NaN()));
    }
  }
  return out;
}

template <typename T>
std::vector<double> values_of(const std::vector<T>& elements) {
  std::vector<double> out;
  for (const T x : elements) out.push_back(value_of(x));
  return out;
}

template <typename T>
DeviceBuffer<T> on_device(const std::vector<T>& values) {
  DeviceBuffer<T> buffer(0, values.size());
  if (values.empty()) return buffer;
  CUDA_CHECK(cudaMemcpy(buffer.data(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaDeviceSynchronize());  // the copy may be pending, and other streams do not wait for it
  return buffer;
}

template <typename T>
std::vector<T> on_host(const DeviceBuffer<T>& buffer) {
  std::vector<T> values(buffer.size());
  if (values.empty()) return values;
  CUDA_CHECK(cudaMemcpy(values.data(), buffer.data(), buffer.bytes(), cudaMemcpyDeviceToHost));
  return values;
}

template <typename InputAndOutput>
class GemmTest : public testing::Test {
 protected:
  using T = typename InputAndOutput::first_type;
  using Out = typename InputAndOutput::second_type;

  void SetUp() override {
    if (!backend::unavailable().empty()) GTEST_SKIP() << backend::unavailable();
    CUDA_CHECK(cudaSetDevice(0));
  }

  // Computes a GEMM of exact data with `padding` elements between rows, and compares all of C, padding
  // included.
  static void expect_right(MatmulShape shape, const GemmOptions& options, std::int64_t padding) {
    std::vector<T> a(static_cast<std::size_t>(shape.m * shape.k));
    std::vector<T> b(static_cast<std::size_t>(shape.k * shape.n));
    fill_sparse_signs<T>(a, whole_matrix(shape.m, shape.k), 1);
    fill_ternary<T>(b, whole_matrix(shape.k, shape.n), 2);
    std::vector<double> expected(static_cast<std::size_t>(shape.m * shape.n));
    reference_matmul<T, double>(shape, a, b, expected);
    std::vector<double> before(expected.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i] =
          options.beta == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(i % 7) * 2;
      expected[i] = options.alpha * expected[i] + (options.beta == 0 ? 0 : options.beta * before[i]);
    }

    const bool a_transposed = options.a == Layout::kTransposed;
    const bool b_transposed = options.b == Layout::kTransposed;
    const std::int64_t a_columns = a_transposed ? shape.m : shape.k;
    const std::int64_t b_columns = b_transposed ? shape.k : shape.n;
    const std::vector<double> a_stored =
        a_transposed ? transposed(values_of(a), shape.m, shape.k) : values_of(a);
    const std::vector<double> b_stored =
        b_transposed ? transposed(values_of(b), shape.k, shape.n) : values_of(b);
    const std::int64_t ldc = shape.n + padding;
    const DeviceBuffer<T> a_device = on_device(padded<T>(a_stored, a_columns, a_columns + padding));
    const DeviceBuffer<T> b_device = on_device(padded<T>(b_stored, b_columns, b_columns + padding));
    const DeviceBuffer<Out> c_device = on_device(padded<Out>(before, shape.n, ldc));
    const Stream stream(0);
    const Handle cublas;
    matmul_row_major(cublas.handle, stream, shape, a_device.data(), a_columns + padding, b_device.data(),
                     b_columns + padding, c_device.data(), ldc, options);
    CUDA_CHECK(cudaStreamSynchronize(stream));

    const std::vector<Out> c_padded = on_host(c_device);
    std::vector<Out> c;
    for (std::size_t i = 0; i < c_padded.size(); ++i) {
      if (static_cast<std::int64_t>(i) % ldc < shape.n) {
        c.push_back(c_padded[i]);
      } else {
        ASSERT_TRUE(is_nan(c_padded[i])) << "written between two rows, at " << i;
      }
    }
    std::vector<Out> expected_elements;
    for (const double value : expected) expected_elements.push_back(element<Out>(value));
    const Verification verification =
        compare_matrices<Out>(expected_elements, c, whole_matrix(shape.m, shape.n));
    EXPECT_TRUE(verification.ok()) << shape.m << " x " << shape.n << " x " << shape.k << ", padding "
                                   << padding << ": " << describe(verification);
  }
};

struct InputAndOutputNames {
  template <typename Types>
  static std::string GetName(int) {
    return std::string(name_of(type_of<typename Types::first_type>())) + "_" +
           name_of(type_of<typename Types::second_type>());
  }
};

using AllTypes = testing::Types<std::pair<__half, __half>, std::pair<__half, float>,
                                std::pair<__nv_bfloat16, __nv_bfloat16>, std::pair<__nv_bfloat16, float>,
                                std::pair<float, float>>;
TYPED_TEST_SUITE(GemmTest, AllTypes, InputAndOutputNames);

TYPED_TEST(GemmTest, DenseMatrices) {
  for (const MatmulShape shape : kShapes) TestFixture::expect_right(shape, {}, 0);
}

TYPED_TEST(GemmTest, RowsThatAreFurtherApart) {
  for (const MatmulShape shape : kShapes) {
    for (const std::int64_t padding : {1, 8, 13}) TestFixture::expect_right(shape, {}, padding);
  }
}

TYPED_TEST(GemmTest, TransposedFactors) {
  for (const MatmulShape shape : kShapes) {
    for (const std::int64_t padding : {0, 3}) {
      TestFixture::expect_right(shape, {.a = Layout::kTransposed}, padding);
      TestFixture::expect_right(shape, {.b = Layout::kTransposed}, padding);
      TestFixture::expect_right(shape, {.a = Layout::kTransposed, .b = Layout::kTransposed}, padding);
    }
  }
}

TYPED_TEST(GemmTest, AddsToWhatIsThere) {
  for (const MatmulShape shape : {MatmulShape{1, 1, 1}, {17, 31, 13}, {64, 128, 60}}) {
    for (const GemmOptions options : {GemmOptions{.beta = 1},
                                      {.alpha = -2, .beta = 0.5F},
                                      {.alpha = 0, .beta = 1},
                                      {.alpha = -1},
                                      {.alpha = 0}}) {
      TestFixture::expect_right(shape, options, 0);
      TestFixture::expect_right(shape, options, 5);
    }
  }
}

// If K is 0, C = beta C; if beta is 0 too, C is not read.
TYPED_TEST(GemmTest, NothingToSum) {
  for (const std::int64_t padding : {0, 5}) {
    TestFixture::expect_right({5, 7, 0}, {}, padding);
    TestFixture::expect_right({5, 7, 0}, {.beta = 0.5F}, padding);
    TestFixture::expect_right({5, 7, 0}, {.a = Layout::kTransposed, .b = Layout::kTransposed}, padding);
  }
}

TYPED_TEST(GemmTest, NothingToDo) {
  TestFixture::expect_right({0, 7, 3}, {}, 0);
  TestFixture::expect_right({5, 0, 3}, {}, 0);
  TestFixture::expect_right({5, 0, 3}, {}, 4);
  TestFixture::expect_right({0, 0, 0}, {}, 0);
}

TYPED_TEST(GemmTest, DenseFormTakesTheRowsLengths) {
  using T = typename TypeParam::first_type;
  using Out = typename TypeParam::second_type;
  const MatmulShape shape = {3, 5, 7};
  std::vector<T> a(21);
  std::vector<T> b(35);
  fill_sparse_signs<T>(a, whole_matrix(3, 7), 1);
  fill_ternary<T>(b, whole_matrix(7, 5), 2);
  std::vector<Out> expected(15);
  reference_matmul<T, Out>(shape, a, b, expected);
  const DeviceBuffer<T> a_normal = on_device(a);
  const DeviceBuffer<T> b_normal = on_device(b);
  const DeviceBuffer<T> a_transposed = on_device(padded<T>(transposed(values_of(a), 3, 7), 3, 3));
  const DeviceBuffer<T> b_transposed = on_device(padded<T>(transposed(values_of(b), 7, 5), 7, 7));
  const Handle cublas;
  const Stream stream(0);
  for (const Layout a_layout : {Layout::kNormal, Layout::kTransposed}) {
    for (const Layout b_layout : {Layout::kNormal, Layout::kTransposed}) {
      const DeviceBuffer<Out> c = on_device(std::vector<Out>(15, element<Out>(-99)));
      matmul_row_major(cublas.handle, stream, shape,
                       (a_layout == Layout::kNormal ? a_normal : a_transposed).data(),
                       (b_layout == Layout::kNormal ? b_normal : b_transposed).data(), c.data(),
                       {.a = a_layout, .b = b_layout});
      CUDA_CHECK(cudaStreamSynchronize(stream));
      EXPECT_TRUE(compare_matrices<Out>(expected, on_host(c), 5).ok());
    }
  }
}

TYPED_TEST(GemmTest, RandomNormalsKeepWithinTheTolerance) {
  using T = typename TypeParam::first_type;
  using Out = typename TypeParam::second_type;
  for (const MatmulShape shape : {MatmulShape{100, 120, 1}, {33, 65, 100}, {256, 128, 4096}}) {
    std::vector<T> a(static_cast<std::size_t>(shape.m * shape.k));
    std::vector<T> b(static_cast<std::size_t>(shape.k * shape.n));
    fill_normal<T>(a, whole_matrix(shape.m, shape.k), 3);
    fill_normal<T>(b, whole_matrix(shape.k, shape.n), 4);
    std::vector<double> expected(static_cast<std::size_t>(shape.m * shape.n));
    reference_matmul<T, double>(shape, a, b, expected);
    const DeviceBuffer<T> a_device = on_device(a);
    const DeviceBuffer<T> b_device = on_device(b);
    const DeviceBuffer<Out> c_device(0, expected.size());
    const Handle cublas;
    const Stream stream(0);
    matmul_row_major(cublas.handle, stream, shape, a_device.data(), b_device.data(), c_device.data());
    CUDA_CHECK(cudaStreamSynchronize(stream));
    const Verification verification = compare_within<Out>(
        expected, on_host(c_device), whole_matrix(shape.m, shape.n),
        matmul_tolerance(shape.k, type_of<T>(), type_of<Out>()), matmul_norms<T>(shape, a, b));
    EXPECT_TRUE(verification.ok()) << describe(verification);
  }
}

TYPED_TEST(GemmTest, TheHandleKeepsTheStream) {
  using T = typename TypeParam::first_type;
  using Out = typename TypeParam::second_type;
  const DeviceBuffer<T> factor = on_device(std::vector<T>(1, element<T>(1)));
  const DeviceBuffer<Out> c(0, 1);
  const Handle cublas;
  const Stream one(0);
  const Stream other(0);
  for (const Stream* stream : {&one, &other, &other, &one}) {
    matmul_row_major(cublas.handle, *stream, {1, 1, 1}, factor.data(), factor.data(), c.data());
    cudaStream_t kept = nullptr;
    CUBLAS_CHECK(cublasGetStream(cublas.handle, &kept));
    EXPECT_EQ(kept, stream->get());
    CUDA_CHECK(cudaStreamSynchronize(*stream));
  }
}

// Rejected before cuBLAS is called, so no GPU is needed.
TEST(GemmRefusesTest, SizesBeyond31Bits) {
  const std::int64_t large = std::int64_t{1} << 31;
  const float* factor = nullptr;
  float* c = nullptr;
  const auto multiply = [&](MatmulShape shape, std::int64_t lda, std::int64_t ldb, std::int64_t ldc) {
    matmul_row_major(nullptr, nullptr, shape, factor, lda, factor, ldb, c, ldc);
  };
  EXPECT_THROW(multiply({large, 1, 1}, 1, 1, 1), UsageError);
  EXPECT_THROW(multiply({1, large, 1}, 1, large, large), UsageError);
  EXPECT_THROW(multiply({1, 1, large}, large, 1, 1), UsageError);
  EXPECT_THROW(multiply({1, 1, 1}, large, 1, 1), UsageError);
  EXPECT_THROW(multiply({1, 1, 1}, 1, large, 1), UsageError);
  EXPECT_THROW(multiply({1, 1, 1}, 1, 1, large), UsageError);
  try {
    multiply({1, 1, 1}, 1, large, 1);
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "a product with ldb of 2147483648 is too large for cuBLAS, which takes less than 2^31");
  }
}

TEST(GemmRefusesTest, RowsThatOverlapAndNegativeSizes) {
  const float* factor = nullptr;
  float* c = nullptr;
  const auto multiply = [&](MatmulShape shape, std::int64_t lda, std::int64_t ldb, std::int64_t ldc,
                            const GemmOptions& options = {}) {
    matmul_row_major(nullptr, nullptr, shape, factor, lda, factor, ldb, c, ldc, options);
  };
  EXPECT_THROW(multiply({2, 3, 4}, 3, 3, 3), std::invalid_argument);
  EXPECT_THROW(multiply({2, 3, 4}, 4, 2, 3), std::invalid_argument);
  EXPECT_THROW(multiply({2, 3, 4}, 4, 3, 2), std::invalid_argument);
  EXPECT_THROW(multiply({2, 3, 4}, 1, 3, 3, {.a = Layout::kTransposed}), std::invalid_argument);
  EXPECT_THROW(multiply({2, 3, 4}, 4, 3, 3, {.b = Layout::kTransposed}), std::invalid_argument);
  EXPECT_THROW(multiply({-1, 3, 4}, 4, 3, 3), std::invalid_argument);
  EXPECT_THROW(multiply({2, -1, 4}, 4, 3, 3), std::invalid_argument);
  EXPECT_THROW(multiply({2, 3, -1}, 4, 3, 3), std::invalid_argument);
}

}  // namespace
}  // namespace overlap
