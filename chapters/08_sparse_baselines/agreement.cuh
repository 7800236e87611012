// Chapter 08: what the ranks tell each other before they reduce anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "overlap/ranks.hpp"
#include "overlap/sparse.hpp"

namespace overlap {

/// One rank's part of a call, without its data.
struct SparseRecord {
  std::int64_t count = 0;     ///< rows that it has, each once
  bool bad_index = false;     ///< one of its indices is not in the table
  std::int64_t rows = 0;      ///< V
  std::int64_t features = 0;  ///< F
  ElementType type = ElementType::kF32;
  std::size_t index_bytes = 0;
};

/// The record of a rank that calls with these types.
template <SparseIndex Index, Floating T>
SparseRecord record_of(SparseShape shape, std::int64_t count, bool bad_index) {
  return {count, bad_index, shape.rows, shape.features, type_of<T>(), sizeof(Index)};
}

/// Everybody's record, by rank. A collective whose ranks disagree on a size waits for ever or adds up what
/// does not belong together; so nothing else is sent before this. Collective; the hosts meet. Throws
/// SparseInputError, on all ranks with the same sentence, if a rank has a bad index or another shape or type
/// than rank 0. Source: the metadata record of PyTorch's Gloo back end.
inline std::vector<SparseRecord> agree(Rank& rank, const SparseRecord& own) {
  const std::vector<SparseRecord> all = rank.exchange(own);
  const SparseRecord& first = all.front();
  // Every rank looks at all records in the same order, and so finds the same fault first.
  for (std::size_t id = 0; id < all.size(); ++id) {
    const SparseRecord& other = all[id];
    const std::string who = "rank " + std::to_string(id);
    const auto require_same = [&](std::int64_t found, std::int64_t wanted, const char* what) {
      if (found == wanted) return;
      throw SparseInputError(who + " has " + what + " " + std::to_string(found) + ", and rank 0 " +
                             std::to_string(wanted));
    };
    if (other.bad_index) {
      throw SparseInputError(who + " has an index that is not between 0 and " +
                             std::to_string(other.rows - 1));
    }
    require_same(other.rows, first.rows, "a table of rows:");
    require_same(other.features, first.features, "features of a row:");
    require_same(static_cast<std::int64_t>(other.index_bytes), static_cast<std::int64_t>(first.index_bytes),
                 "row numbers of bytes:");
    if (other.type != first.type) {
      throw SparseInputError(who + " has elements of type " + name_of(other.type) + ", and rank 0 of " +
                             name_of(first.type));
    }
  }
  return all;
}

}  // namespace overlap
