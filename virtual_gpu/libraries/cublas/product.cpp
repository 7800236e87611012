#include "libraries/cublas/product.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "libraries/cublas/float_product.hpp"

namespace vgpu {
namespace {

std::uint64_t tiles(const Machine& machine, const Product& product) {
  const auto parts = [](int size, int tile) { return static_cast<std::uint64_t>((size + tile - 1) / tile); };
  return parts(product.m, machine.product_tile_rows) * parts(product.n, machine.product_tile_columns) *
         static_cast<std::uint64_t>(product.batch);
}

/// ns that one multiprocessor needs for a tile.
double tile_time(const Machine& machine, const Product& product) {
  const double rate = size_of(product.a.type) > 2 ? machine.product_rate_f32 : machine.product_rate_f16;
  const double operations = 2.0 * machine.product_tile_rows * machine.product_tile_columns * product.k;
  return operations / (rate / machine.multiprocessors);
}

/// `rows` x `columns` elements as floats or doubles: in place, or converted into `buffer`.
template <class Real>
struct Reals {
  Reals(Element type, const std::byte* data, int rows, int columns, int ld) : data(nullptr), ld(ld) {
    if (size_of(type) == sizeof(Real)) {
      this->data = reinterpret_cast<const Real*>(data);
      return;
    }
    const auto height = static_cast<std::size_t>(rows);
    buffer = std::make_unique_for_overwrite<Real[]>(height * columns);
    for (int column = 0; column < columns; ++column) {
      const std::byte* from = data + static_cast<std::size_t>(column) * ld * size_of(type);
      to_real(type, from, &buffer[height * column], height);
    }
    this->data = buffer.get();
    this->ld = rows;
  }
  std::unique_ptr<Real[]> buffer;
  const Real* data;
  int ld;
};

/// Tells the race detector of each column of each matrix: what lies between them is not touched.
template <class Access>
void for_columns(const Matrices& matrices, int batch, Access access) {
  for (int matrix = 0; matrix < batch; ++matrix) {
    for (int column = 0; column < matrices.columns; ++column)
      access(matrices.at(matrix, 0, column), matrices.rows * size_of(matrices.type));
  }
}

}  // namespace

ProductOperation::ProductOperation(Runtime& runtime, Device& device, const Product& product)
    : LibraryWork(runtime, device, tiles(runtime.machine(), product), tile_time(runtime.machine(), product)),
      product_(product) {}

std::string ProductOperation::describe() const {
  std::string text = "cuBLAS product " + std::to_string(product_.m) + " x " + std::to_string(product_.n) +
                     " x " + std::to_string(product_.k) + " (" + name_of(product_.a.type) + ")";
  return product_.batch == 1 ? text : text + ", " + std::to_string(product_.batch) + " times";
}

bool ProductOperation::touches(const void* memory, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(memory);
  const auto meets = [&](const Matrices& matrices) {
    for (int matrix = 0; matrix < product_.batch; ++matrix) {
      const std::byte* first = matrices.at(matrix, 0, 0);
      if (first < begin + bytes && begin < first + matrices.bytes()) return true;
    }
    return false;
  };
  return meets(product_.c) || (product_.reads_factors() && (meets(product_.a) || meets(product_.b)));
}

bool ProductOperation::accessible(const Matrices& matrices) {
  for (int matrix = 0; matrix < product_.batch; ++matrix) {
    const std::string name = std::string("matrix ") + matrices.name;
    if (!can_access(name, matrices.at(matrix, 0, 0), matrices.bytes())) return false;
  }
  return true;
}

bool ProductOperation::all_accessible() {
  return accessible(product_.c) &&
         (!product_.reads_factors() || (accessible(product_.a) && accessible(product_.b)));
}

bool ProductOperation::first_block_begins() {
  if (!all_accessible()) return false;
  if constexpr (hb::kEnabled) {
    const auto read = [&](const std::byte* data, std::size_t bytes) {
      hb::read(stream->contexts().own(), site, data, bytes);
    };
    if (product_.reads_factors()) {
      for_columns(product_.a, product_.batch, read);
      for_columns(product_.b, product_.batch, read);
    }
    if (product_.beta != 0) for_columns(product_.c, product_.batch, read);
  }
  results_.resize(columns() * column_bytes());
  compute(0, columns() / 2);
  return true;
}

bool ProductOperation::last_block_ends() {
  if (!all_accessible()) return false;
  compute(columns() / 2, columns());
  const std::byte* result = results_.data();
  for_columns(product_.c, product_.batch, [&](std::byte* data, std::size_t bytes) {
    hb::write(stream->contexts().own(), site, data, bytes);
    std::memcpy(data, result, bytes);
    result += bytes;
  });
  if (memcheck::kEnabled && product_.reads_factors()) carry_unwritten();
  return true;
}

void ProductOperation::carry_unwritten() const {
  const auto& [transpose_a, transpose_b, m, n, k, alpha, beta, a, b, c, batch] = product_;
  for (int matrix = 0; matrix < batch; ++matrix) {
    std::vector<bool> row_is_written(m, true), column_is_written(n, true);
    for (int depth = 0; depth < k; ++depth) {
      for (int row = 0; row < m; ++row) {
        const auto* from = transpose_a ? a.at(matrix, depth, row) : a.at(matrix, row, depth);
        if (!memcheck::written(from)) row_is_written[row] = false;
      }
      for (int column = 0; column < n; ++column) {
        const auto* from = transpose_b ? b.at(matrix, column, depth) : b.at(matrix, depth, column);
        if (!memcheck::written(from)) column_is_written[column] = false;
      }
    }
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        if (!row_is_written[row] || !column_is_written[column])
          memcheck::forget_written(c.at(matrix, row, column), size_of(c.type));
      }
    }
  }
}

void ProductOperation::compute(int first_column, int last_column) {
  for (int matrix = 0; matrix < product_.batch; ++matrix) {
    const int before = matrix * product_.n;
    const int first = std::max(first_column - before, 0), last = std::min(last_column - before, product_.n);
    if (first >= last) continue;
    std::byte* results = &results_[(before + first) * column_bytes()];
    if (product_.c.type == Element::kF64) {
      compute_in<double>(matrix, first, last, results);
    } else {
      compute_in<float>(matrix, first, last, results);
    }
  }
}

template <class Real>
void ProductOperation::compute_in(int matrix, int first, int last, std::byte* results) {
  const auto& [transpose_a, transpose_b, m, n, k, a_factor, c_factor, a, b, c, batch] = product_;
  const Real alpha = static_cast<Real>(a_factor), beta = static_cast<Real>(c_factor);
  const auto height = static_cast<std::size_t>(m);
  const int width = last - first;
  const auto sums = std::make_unique_for_overwrite<Real[]>(height * width);
  if (product_.reads_factors()) {
    const Reals<Real> left(a.type, a.at(matrix, 0, 0), a.rows, a.columns, a.ld);
    const std::byte* from = transpose_b ? b.at(matrix, first, 0) : b.at(matrix, 0, first);
    const Reals<Real> right(b.type, from, transpose_b ? width : k, transpose_b ? k : width, b.ld);
    multiply(RealProduct<Real>{transpose_a, transpose_b, m, width, k, left.data, left.ld, right.data,
                               right.ld, sums.get(), m});
  } else {
    std::fill_n(sums.get(), height * width, Real{});
  }
  const auto old = std::make_unique_for_overwrite<Real[]>(height);
  for (int column = 0; column < width; ++column, results += column_bytes()) {
    Real* sum = &sums[height * column];
    if (beta == 0) {  // C is not read: it may hold NaN
      for (std::size_t i = 0; i < height; ++i) sum[i] = alpha * sum[i];
    } else {
      to_real(c.type, c.at(matrix, 0, first + column), old.get(), height);
      for (std::size_t i = 0; i < height; ++i) sum[i] = alpha * sum[i] + beta * old[i];
    }
    from_real(c.type, sum, results, height);
  }
}

}  // namespace vgpu
