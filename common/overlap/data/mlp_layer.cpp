#include "overlap/data/mlp_layer.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "overlap/data/parallel.hpp"

namespace overlap {
namespace {

// The elements of a row-major matrix that are not 0, column by column: those of column j are at begin[j] ...
// begin[j + 1] - 1.
struct SparseColumns {
  std::vector<std::size_t> begin;
  std::vector<std::int64_t> row;
  std::vector<double> value;
};

template <Floating T>
SparseColumns sparse_columns(std::span<const T> matrix, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  SparseColumns sparse;
  sparse.begin.assign(width + 1, 0);
  for (auto row = matrix.begin(); row != matrix.end(); row += columns) {
    for (std::size_t j = 0; j < width; ++j) sparse.begin[j + 1] += value_of(row[j]) != 0;
  }
  for (std::size_t j = 0; j < width; ++j) sparse.begin[j + 1] += sparse.begin[j];
  sparse.row.resize(sparse.begin.back());
  sparse.value.resize(sparse.begin.back());
  std::vector<std::size_t> next(sparse.begin.begin(), sparse.begin.end() - 1);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(matrix.size()) / columns; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      const double value = value_of(matrix[static_cast<std::size_t>(i) * width + j]);
      if (value == 0) continue;
      const std::size_t place = next[j]++;
      sparse.row[place] = i;
      sparse.value[place] = value;
    }
  }
  return sparse;
}

// Element `column` of a row times the matrix.
double times_column(const double* row, const SparseColumns& matrix, std::size_t column) {
  double sum = 0;
  for (std::size_t i = matrix.begin[column]; i < matrix.begin[column + 1]; ++i) {
    sum += row[matrix.row[i]] * matrix.value[i];
  }
  return sum;
}

}  // namespace

double activated(Activation activation, double value) {
  switch (activation) {
    case Activation::kRelu:
      return value < 0 ? 0 : value;  // NaN stays NaN
    case Activation::kGeluTanh:      // 1 + tanh(u) = 2 / (1 + e^-2u), without the loss of digits near 0
      return value / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) *
                                   (value + 0.044715 * value * value * value)));
    case Activation::kGeluErf:
      return value / 2 * std::erfc(-value / std::numbers::sqrt2);  // 1 + erf(v) = erfc(-v)
  }
  throw std::invalid_argument("activated: no such activation");
}

template <Floating T>
std::vector<double> reference_norm(std::span<const T> x, std::span<const T> gain, double epsilon) {
  const std::size_t h = gain.size();
  if (h == 0 || x.size() % h != 0)
    throw std::invalid_argument("reference_norm: X is no whole number of rows");
  std::vector<double> normed(x.size());
  parallel_shares(
      static_cast<std::int64_t>(x.size() / h),
      [&](Range rows) {
        for (auto row = static_cast<std::size_t>(rows.begin); row < static_cast<std::size_t>(rows.end);
             ++row) {
          double squares = 0;
          for (std::size_t k = 0; k < h; ++k) squares += value_of(x[row * h + k]) * value_of(x[row * h + k]);
          const double scale = 1 / std::sqrt(squares / static_cast<double>(h) + epsilon);
          for (std::size_t k = 0; k < h; ++k) {
            normed[row * h + k] = value_of(gain[k]) * (value_of(x[row * h + k]) * scale);
          }
        }
      },
      worth_a_thread(static_cast<std::int64_t>(h)));
  return normed;
}

template <Floating T>
std::vector<double> reference_mlp(std::span<const T> x, const HostLayer<T>& layer) {
  const std::size_t h = layer.gain.size();
  const std::size_t f = h == 0 ? 0 : layer.w1.size() / h;
  if (f == 0 || layer.w1.size() != h * f || layer.w2.size() != h * f) {
    throw std::invalid_argument("reference_mlp: W1 and W2 do not have the sizes that the gain says");
  }
  std::vector<double> y = reference_norm(x, layer.gain, layer.epsilon);
  const SparseColumns w1 = sparse_columns(layer.w1, static_cast<std::int64_t>(f));
  const SparseColumns w2 = sparse_columns(layer.w2, static_cast<std::int64_t>(h));
  parallel_shares(
      static_cast<std::int64_t>(x.size() / h),
      [&](Range rows) {
        std::vector<double> hidden(f);
        for (auto row = static_cast<std::size_t>(rows.begin); row < static_cast<std::size_t>(rows.end);
             ++row) {
          double* own = y.data() + row * h;  // N before, Y afterwards
          for (std::size_t j = 0; j < f; ++j)
            hidden[j] = activated(layer.activation, times_column(own, w1, j));
          for (std::size_t k = 0; k < h; ++k) {
            own[k] = value_of(x[row * h + k]) + times_column(hidden.data(), w2, k);
          }
        }
      },
      worth_a_thread(static_cast<std::int64_t>(w1.value.size() + w2.value.size())));
  return y;
}

template std::vector<double> reference_norm(std::span<const __half>, std::span<const __half>, double);
template std::vector<double> reference_norm(std::span<const __nv_bfloat16>, std::span<const __nv_bfloat16>,
                                            double);
template std::vector<double> reference_norm(std::span<const float>, std::span<const float>, double);
template std::vector<double> reference_mlp(std::span<const __half>, const HostLayer<__half>&);
template std::vector<double> reference_mlp(std::span<const __nv_bfloat16>, const HostLayer<__nv_bfloat16>&);
template std::vector<double> reference_mlp(std::span<const float>, const HostLayer<float>&);

}  // namespace overlap
