// Row-sparse gradients in coordinate form (COO), as the backward pass of an embedding layer produces them:
// only for the rows of the table that a batch has used.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "overlap/gpu/element.hpp"

namespace overlap {

/// The type of row numbers.
template <typename T>
concept SparseIndex = std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

/// Which SparseIndex: what --index chooses.
enum class IndexType { kInt32, kInt64 };

/// "int32" or "int64".
const char* name_of(IndexType type);

/// The IndexType of an Index.
template <SparseIndex Index>
constexpr IndexType index_type_of() {
  return std::same_as<Index, std::int32_t> ? IndexType::kInt32 : IndexType::kInt64;
}

/// Which rows the ranks have: what --pattern chooses.
enum class RowPattern {
  kUniform,    ///< each rank draws its rows from the whole table, all equally likely
  kZipf,       ///< row i is drawn 1 / (i + 1) times as often as row 0, until a rank has enough distinct rows
  kIdentical,  ///< all ranks have the same rows
  kDisjoint,   ///< no two ranks have a row in common
  kUneven,     ///< as kUniform, but rank r of P has only (r + 1) / P of the rows, rounded down
};

/// "uniform", "zipf", "identical", "disjoint" or "uneven".
const char* name_of(RowPattern pattern);

/// The sizes of a sparse all-reduce.
struct SparseShape {
  std::int64_t rows = 0;      ///< V, of the whole table
  std::int64_t features = 0;  ///< F, elements of a row
  std::int64_t entries = 0;   ///< of one rank: its distinct rows, or what an algorithm has room for

  std::size_t elements(std::int64_t count) const {
    return static_cast<std::size_t>(count) * static_cast<std::size_t>(features);
  }
  bool operator==(const SparseShape&) const = default;
};

/// Which rows of a table there are, ascending, each once. `count` is known to the host, the rest is device
/// memory.
template <SparseIndex Index>
struct RowList {
  const Index* indices = nullptr;  ///< [count]
  std::int64_t count = 0;          ///< how many there are
};

/// Rows of a table on a GPU. `count` is known to the host, the rest is device memory.
template <SparseIndex Index, Floating T>
struct SparseRows {
  const Index* indices = nullptr;  ///< [count], which row of the table each one is
  const T* values = nullptr;       ///< [count, F]
  std::int64_t count = 0;          ///< how many there are

  RowList<Index> list() const { return {indices, count}; }
};

/// The ranks' inputs cannot be reduced. All of them throw it, with the same sentence, and may be called
/// again.
class SparseInputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Calls `function` with the TypeTags of the two types. See visit_type().
template <typename Function>
void visit_sparse(IndexType index, ElementType type, const Function& function) {
  visit_type<float, __half, __nv_bfloat16>(type, [&](auto tag) {
    if (index == IndexType::kInt32) {
      function(TypeTag<std::int32_t>{}, tag);
    } else if constexpr (detail::kAllTypes) {
      function(TypeTag<std::int64_t>{}, tag);
    } else {
      throw std::invalid_argument(std::string("--index int64") + detail::kNotCompiled);
    }
  });
}

}  // namespace overlap
