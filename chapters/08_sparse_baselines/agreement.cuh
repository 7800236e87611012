// Chapter 08: the ranks compare their inputs before they reduce anything.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "overlap/data/sparse.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::sparse_baselines {

/// The input of one rank.
struct SparseRecord {
  SparseShape shape;                     ///< of the table
  ElementType type = ElementType::kF32;  ///< of the values
  IndexType index = IndexType::kInt32;   ///< of row numbers
  bool too_many = false;                 ///< 2^31 entries or more, or fewer than none
  bool bad_index = false;                ///< an entry has no row of the table
};

/// True if so many entries cannot be coalesced: CUB counts them in 32 bits.
inline bool too_many(std::int64_t entries) { return entries < 0 || entries > INT32_MAX; }

/// The record of a rank that calls with these types.
template <SparseIndex Index, Floating T>
SparseRecord record_of(SparseShape shape, std::int64_t entries, bool bad_index) {
  return {shape, type_of<T>(), sizeof(Index) == 4 ? IndexType::kInt32 : IndexType::kInt64, too_many(entries),
          bad_index};
}

/// Throws SparseInputError if a rank's input cannot be reduced, or has another shape or type than rank 0's.
/// Every rank checks the same records in the order of the ranks, and so finds the same fault first.
inline void require_agreement(const std::vector<SparseRecord>& all) {
  const SparseRecord& first = all.front();
  for (std::size_t id = 0; id < all.size(); ++id) {
    const SparseRecord& record = all[id];
    const std::string who = "rank " + std::to_string(id);
    const auto require_same = [&](const auto& describe) {
      const std::string found = describe(record), wanted = describe(first);
      if (found != wanted) throw SparseInputError(who + " has " + found + ", and rank 0 " + wanted);
    };
    if (record.too_many) throw SparseInputError(who + " has less than 0 or more than 2^31 - 1 entries");
    require_same(
        [](const SparseRecord& of) { return "a table of " + std::to_string(of.shape.rows) + " rows"; });
    require_same(
        [](const SparseRecord& of) { return "rows of " + std::to_string(of.shape.features) + " elements"; });
    require_same([](const SparseRecord& of) {
      return std::string(name_of(of.type)) + " elements and " + name_of(of.index) + " indices";
    });
    if (record.bad_index) {
      throw SparseInputError(who + " has an index that is not between 0 and " +
                             std::to_string(record.shape.rows - 1));
    }
  }
}

/// The hosts exchange and compare their records. A collective whose ranks disagree on a size waits for ever
/// or adds unrelated data; so nothing else is sent before this. Collective. Throws SparseInputError, on all
/// ranks with the same sentence. Source: the metadata record of PyTorch's Gloo back end.
inline void agree(Rank& rank, const SparseRecord& own) { require_agreement(rank.exchange(own)); }
/// The same within a call that `clock` times. If it throws, the phase ends, too; otherwise the timeline would
/// give its name to the next operations.
inline void agree(Rank& rank, const SparseRecord& own, PhaseClock& clock, cudaStream_t stream) {
  try {
    agree(rank, own);
  } catch (const SparseInputError&) {
    clock.stop(stream);
    throw;
  }
}

}  // namespace overlap::sparse_baselines
