// Chapter 15: a rank's own part in sums that owners add up. An owner reads its entries of a row while it
// adds; before that, each rank writes the sums of only those rows that another rank owns.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/launch.hpp"

namespace overlap::sparse_beyond {

/// Calls `launch` with the number of elements of one access as a constant: 16 bytes, or one element where a
/// row is no multiple of that. Then checks the launch.
template <Floating T, typename Launch>
void by_width(std::int64_t features, const Launch& launch) {
  constexpr int kWide = 16 / sizeof(T);
  if (features % kWide == 0) {
    launch(std::integral_constant<int, kWide>{});
  } else {
    launch(std::integral_constant<int, 1>{});
  }
  CUDA_CHECK(cudaGetLastError());
}

/// As many elements as one access moves.
template <Floating T, int kWidth>
struct alignas(kWidth * sizeof(T)) Vec16 {
  T element[kWidth];  ///< neighbours in a row
};

/// Which ranks have row g: bit r is set if rank r has it. No bit, if g is none of the rows of all.
__device__ inline std::uint32_t contributors_of(const std::int32_t* places, std::int64_t most, std::int64_t g,
                                                int ranks) {
  std::uint32_t contributors = 0;
  for (int rank = 0; rank < ranks; ++rank)
    contributors |= std::uint32_t{places[rank * most + g] >= 0} << rank;
  return contributors;
}

/// A rank's entries, by row, in device memory: see Coalesce.
template <Floating T>
struct OwnEntries {
  int rank;                     ///< whose
  const T* values;              ///< [entries, F], in the caller's order
  const std::int32_t* entries;  ///< their numbers: those of a row together, in their order
  const std::int32_t* begins;   ///< of each row of the rank, the first of its numbers
  const std::int32_t* lengths;  ///< and how many it has
};

/// A vector of the rank's own row at `place`, summed as in chapter 08: its entries in their order, in f32,
/// and rounded once, to the type in which rows travel. `values` may have any address: so it is read by
/// elements.
template <int kWidth, Floating Wire, Floating T>
__device__ Vec16<Wire, kWidth> own_sum(const OwnEntries<T>& own, std::int64_t place, std::int64_t vector,
                                       std::int64_t vectors) {
  const std::int32_t* entries = own.entries + own.begins[place];
  float sum[kWidth] = {};
  for (std::int32_t entry = 0; entry < own.lengths[place]; ++entry) {
    const T* values = own.values + (entries[entry] * vectors + vector) * kWidth;
    for (int i = 0; i < kWidth; ++i) {
      const float value = static_cast<float>(values[i]);
      sum[i] = entry == 0 ? value : sum[i] + value;  // so that a single -0 stays one
    }
  }
  Vec16<Wire, kWidth> rounded;
  for (int i = 0; i < kWidth; ++i) rounded.element[i] = static_cast<Wire>(sum[i]);
  return rounded;
}

/// Blocks of a kernel that takes any number of rows, a warp a row after the other: one for each row, up to
/// as many as keep any GPU busy.
inline unsigned blocks_for_warps(std::int64_t rows) {
  return static_cast<unsigned>(std::min<std::int64_t>(rows, 4096));
}

/// sums[place] = own_sum() of each row that another rank adds up, and reads there. A warp takes a row after
/// the other, neighbouring rows in different blocks: a grid passes quickly over those that it leaves out.
template <int kWidth, typename OwnerOf, SparseIndex Index, Floating Wire, Floating T>
__global__ void sum_given_rows(OwnEntries<T> own, OwnerOf owner_of_row, int ranks, const Index* rows,
                               const std::int64_t* count, const std::int32_t* places, std::int64_t most,
                               std::int64_t features, Wire* sums) {
  const std::int64_t vectors = features / kWidth, warps = blockDim.x / kWarp, blocks = gridDim.x;
  for (std::int64_t g = threadIdx.x / kWarp * blocks + blockIdx.x; g < *count; g += warps * blocks) {
    const std::int64_t place = places[own.rank * most + g];
    if (place < 0 || owner_of_row(contributors_of(places, most, g, ranks), rows[g]) == own.rank) continue;
    for (std::int64_t vector = threadIdx.x % kWarp; vector < vectors; vector += kWarp) {
      const Vec16<Wire, kWidth> sum = own_sum<kWidth, Wire>(own, place, vector, vectors);
      reinterpret_cast<Vec16<Wire, kWidth>*>(sums)[place * vectors + vector] = sum;
    }
  }
}

}  // namespace overlap::sparse_beyond
