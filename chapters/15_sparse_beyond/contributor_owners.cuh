// Chapter 15, third stage: each row is added up by one owner, who is one of the ranks that have it. The
// owner reads the others' rows out of their memory, adds in the order of the ranks, and writes the sum into
// the memory of all. Of G rows a rank gets (G (P - 2) + N) / P, where N is how many all ranks have together:
// a dense all-reduce of the same rows brings 2 G (P - 1) / P, most of them zeros. A row that only one rank
// has is read by nobody, and written P times.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"

namespace overlap::sparse_beyond {

/// The largest number of ranks: that of run_ranks().
inline constexpr int kMostRanks = 16;

/// Spreads row numbers over all 64 bits: neighbouring rows then have owners that have nothing in common.
/// Source: the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators").
__host__ __device__ constexpr std::uint64_t mix(std::uint64_t bits) {
  bits += 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

/// The rank that adds up a row: one of those that have it, of which there is at least one. Bit r of
/// `contributors` is set if rank r has the row. Depends on nothing that only one rank knows.
__host__ __device__ constexpr int owner_of(std::uint32_t contributors, std::int64_t row) {
  std::uint32_t count = 0;
  for (std::uint32_t left = contributors; left != 0; left &= left - 1) ++count;
  auto skip = static_cast<std::uint32_t>(mix(static_cast<std::uint64_t>(row)) % count);
  int rank = 0;
  for (;; ++rank) {
    if ((contributors >> rank & 1) == 0) continue;
    if (skip == 0) return rank;
    --skip;
  }
}

/// The memory of all ranks, by rank.
template <Floating T>
struct PeerRows {
  const T* sums[kMostRanks];  ///< a rank's own rows, [room][F]
  T* results[kMostRanks];     ///< the rows of all, [room][F]
  int ranks;                  ///< how many
};

/// As many elements as one access moves.
template <Floating T, int kWidth>
struct alignas(kWidth * sizeof(T)) Pack {
  T element[kWidth];  ///< neighbours in a row
};

/// For each row that this rank owns: adds up the contributions, in the order of the ranks, in f32, rounds
/// once, and writes the sum to all ranks. A block takes a row after the other, a thread kWidth neighbouring
/// features.
template <int kWidth, SparseIndex Index, Floating T>
__global__ void add_owned_rows(PeerRows<T> peers, int own, const Index* rows, const std::int64_t* count,
                               const std::int32_t* places, std::int64_t most, std::int64_t features) {
  using Elements = Pack<T, kWidth>;
  const std::int64_t packs = features / kWidth;
  for (std::int64_t g = blockIdx.x; g < *count; g += gridDim.x) {
    std::uint32_t contributors = 0;
    for (int rank = 0; rank < peers.ranks; ++rank)
      contributors |= std::uint32_t{places[rank * most + g] >= 0} << rank;
    if (contributors == 0 || owner_of(contributors, rows[g]) != own) continue;
    for (std::int64_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
      float sum[kWidth] = {};
      bool any = false;
      // [task add: whose rows, in which order, and where does the sum go?]
      for (int rank = 0; rank < peers.ranks; ++rank) {
        if ((contributors >> rank & 1) == 0) continue;
        const std::int64_t place = places[rank * most + g];
        const Elements theirs = reinterpret_cast<const Elements*>(peers.sums[rank])[place * packs + pack];
        for (int i = 0; i < kWidth; ++i) {
          const float value = static_cast<float>(theirs.element[i]);
          sum[i] = any ? sum[i] + value : value;
        }
        any = true;
      }
      Elements result;
      for (int i = 0; i < kWidth; ++i) result.element[i] = static_cast<T>(sum[i]);
      for (int rank = 0; rank < peers.ranks; ++rank)
        reinterpret_cast<Elements*>(peers.results[rank])[g * packs + pack] = result;
      // [/task]
    }
  }
}

/// What a rank has to do with the rows of a call.
struct OwnedRows {
  std::int64_t owned = 0;   ///< rows that it adds up
  std::int64_t pulled = 0;  ///< rows of other ranks that it reads for that
  std::int64_t given = 0;   ///< rows of its own that others read
};

/// Each row added up by one of the ranks that have it.
template <SparseIndex Index, Floating T>
class ContributorOwners {
 public:
  /// See WayToAdd. Throws as PeerBuffer and Signals do.
  ContributorOwners(Rank& rank, SparseShape shape, std::int64_t most_local, std::int64_t most_global)
      : rank_(rank),
        ring_(rank),
        features_(shape.features),
        sums_(rank, shape.elements(most_local)),
        results_(rank, shape.elements(most_global)),
        signals_(rank, 2 * rank.size()) {}

  T* local_sums() const { return sums_.local(); }  ///< see WayToAdd

  /// See WayToAdd.
  void add(RowPlan<Index>& plan, cudaStream_t stream) {
    signals_.begin_call();
    // [task order: what must be there before the first row is read, and what before the result is used?]
    meet(kSummed, stream);
    constexpr int kWide = 16 / sizeof(T);
    if (features_ % kWide == 0) {
      launch<kWide>(plan, stream);
    } else {
      launch<1>(plan, stream);
    }
    // Nobody reads this rank's rows any more, either: the next call may write them.
    meet(kAdded, stream);
    // [/task]
  }
  /// See WayToAdd.
  const T* finish(RowPlan<Index>&, const PlanCounts&, cudaStream_t) const { return results_.local(); }

  /// What the sums of a call cost.
  static Cost cost(const SparseCall& call, OwnedRows rows = {}) {
    const std::int64_t row = call.features * std::int64_t{sizeof(T)};
    return {.bytes_out = row * (rows.given + (call.ranks - 1) * rows.owned),
            .bytes_in = row * (rows.pulled + call.global - rows.owned),
            .launches = 1};
  }

 private:
  /// What all ranks' streams have done before comes before what any of them does after.
  void meet(int barrier, cudaStream_t stream) {
    for (int i = 1; i < rank_.size(); ++i)
      signals_.raise(ring_.at(i), barrier * rank_.size() + rank_.id(), stream);
    for (int i = 1; i < rank_.size(); ++i) signals_.await(barrier * rank_.size() + ring_.at(i), stream);
  }

  template <int kWidth>
  void launch(RowPlan<Index>& plan, cudaStream_t stream) {
    PeerRows<T> peers = {};
    peers.ranks = rank_.size();
    for (int rank = 0; rank < rank_.size(); ++rank) {
      peers.sums[rank] = sums_.on(rank);
      peers.results[rank] = results_.on(rank);
    }
    add_owned_rows<kWidth, Index, T><<<blocks_for_rows(plan.most_global()), kBlockThreads, 0, stream>>>(
        peers, rank_.id(), plan.rows(), plan.global(), plan.places(), plan.most_global(), features_);
    CUDA_CHECK(cudaGetLastError());
  }

  static constexpr int kSummed = 0, kAdded = 1;  // the barriers: signals 0 to P - 1, and P to 2 P - 1

  Rank& rank_;
  Ring ring_;
  std::int64_t features_;
  PeerBuffer<T> sums_;     // [most_local, F]
  PeerBuffer<T> results_;  // [most_global, F]
  Signals signals_;        // [barrier][raising rank]
};

/// Planned by every rank, added up by contributors.
template <SparseIndex Index, Floating T>
using ContributorOwnersAllReduce = PlannedAllReduce<Index, T, ContributorOwners>;

}  // namespace overlap::sparse_beyond
