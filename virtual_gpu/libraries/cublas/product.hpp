// A matrix product of cuBLAS as an operation of a stream.
#pragma once

#include <vector>

#include "libraries/cublas/element.hpp"
#include "libraries/library_work.hpp"

namespace vgpu {

/// Column-major matrices of equal shape, one for each GEMM of a batch.
struct Matrices {
  char name;  // 'A': for messages
  std::byte* data;
  Element type;
  int rows, columns;
  int ld;            // elements from one column to the next
  long long stride;  // elements from one matrix to the next

  std::byte* at(int matrix, int row, int column) const {
    return data + (matrix * stride + static_cast<long long>(column) * ld + row) *
                      static_cast<long long>(size_of(type));
  }
  /// Bytes that one matrix, not empty, spans.
  std::size_t bytes() const { return (static_cast<std::size_t>(columns - 1) * ld + rows) * size_of(type); }
};

/// C = alpha op(A) op(B) + beta C, `batch` times.
struct Product {
  bool transpose_a, transpose_b;
  int m, n, k;
  double alpha, beta;
  Matrices a, b, c;
  int batch;

  /// If not, A and B may be null.
  bool reads_factors() const { return k > 0 && alpha != 0; }
};

/// Occupies multiprocessors by its tiles. Real tiles read their operands at many times and write C at the
/// end. So half of the columns are computed from the operands at the begin of the first tile, the other half
/// from those at the end of the last one, when all of C is written: a start before the operands are ready, an
/// overwritten operand or an early read of C gives a wrong result, also in time order.
class ProductOperation final : public LibraryWork {
 public:
  ProductOperation(Runtime& runtime, Device& device, const Product& product);
  std::string describe() const override;
  std::unique_ptr<Operation> again() const override {
    return std::make_unique<ProductOperation>(runtime_, device_, product_);
  }
  bool touches(const void* memory, std::size_t bytes) const override;

 private:
  bool first_block_begins() override;
  bool last_block_ends() override;
  /// True if the GPU can access all of them; else that is a fault.
  bool accessible(const Matrices& matrices);
  bool all_accessible();
  /// Columns are counted through the batch.
  void compute(int first_column, int last_column);
  /// In the check build: sums of what was never written count as not written.
  void carry_unwritten() const;
  template <class Real>
  void compute_in(int matrix, int first_column, int last_column, std::byte* results);
  int columns() const { return product_.batch * product_.n; }
  std::size_t column_bytes() const { return product_.m * size_of(product_.c.type); }

  Product product_;
  std::vector<std::byte> results_;  // columns of C without gaps
};

}  // namespace vgpu
