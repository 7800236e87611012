// Chapter 15, third stage: each row is summed by one owner, one of the ranks that have it. The owner adds up
// its own entries and the others' sums, which it reads from their memory, in the order of the ranks, and
// writes the sum into the memory of all. Of G rows a rank receives (G (P - 2) + N) / P, where N is the number
// of rows of all ranks together; in a dense all-reduce of the same rows it receives 2 G (P - 1) / P, most of
// them zeros. A row of only one rank is not read by any other, and written P times.
#pragma once

#include <cuda_runtime.h>

#include <concepts>
#include <cstdint>

#include "15_sparse_beyond/own_rows.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signal_barrier.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_beyond {

/// Hashes row numbers to 64 bits: neighbouring rows then have independent owners. Source: the finaliser of
/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators").
__host__ __device__ constexpr std::uint64_t mix(std::uint64_t bits) {
  bits += 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

/// The rank that sums a row: one of those that have it (at least one). Bit r of `contributors` is set if rank
/// r has the row. All ranks compute the same owner.
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
  const T* sums[kMaxRanks];  ///< a rank's own rows, [room][F]: only those that another rank adds up
  T* results[kMaxRanks];     ///< the rows of all, [room][F]
  int ranks;                 ///< how many
};

/// That of two peer buffers.
template <Floating T>
PeerRows<T> peer_rows(const PeerBuffer<T>& sums, const PeerBuffer<T>& results, int ranks) {
  PeerRows<T> peers = {};
  peers.ranks = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    peers.sums[rank] = sums.on(rank);
    peers.results[rank] = results.on(rank);
  }
  return peers;
}

/// The owner among the ranks that have a row, for sum_given_rows().
struct AmongContributors {
  /// See owner_of().
  __device__ int operator()(std::uint32_t contributors, std::int64_t row) const {
    return owner_of(contributors, row);
  }
};

/// sum[i] = element i of a vector of row g, summed over the ranks that have the row, in their order, in f32.
/// The rank's own contribution comes from its entries, each other one directly from its rank's GPU.
template <int kWidth, Floating Wire, Floating T>
__device__ void add_in_order(const PeerRows<Wire>& peers, const OwnEntries<T>& own,
                             std::uint32_t contributors, const std::int32_t* places, std::int64_t most,
                             std::int64_t g, std::int64_t vector, std::int64_t vectors,
                             float (&sum)[kWidth]) {
  using Elements = Vec16<Wire, kWidth>;
  bool any = false;
  // [task add: whose rows, and in which order?]
  // [blank] (void)peers, (void)own, (void)contributors, (void)places, (void)most, (void)g;
  // [blank] (void)vector, (void)vectors, (void)any, (void)sum;
  for (int rank = 0; rank < peers.ranks; ++rank) {
    if ((contributors >> rank & 1) == 0) continue;
    const std::int64_t place = places[rank * most + g];
    const Elements part = rank == own.rank
                              ? own_sum<kWidth, Wire>(own, place, vector, vectors)
                              : reinterpret_cast<const Elements*>(peers.sums[rank])[place * vectors + vector];
    for (int i = 0; i < kWidth; ++i) {
      const float value = static_cast<float>(part.element[i]);
      sum[i] = any ? sum[i] + value : value;  // so that a single -0 stays one
    }
    any = true;
  }
  // [/task]
}

/// For each row that this rank owns: adds up the contributions, in the order of the ranks, in f32, rounds
/// once to the type in which rows travel, and writes the sum to all ranks: to the others as it travels, to
/// own_results as T. A block loops over rows, a thread takes kWidth neighbouring features.
template <int kWidth, SparseIndex Index, Floating Wire, Floating T>
__global__ void add_owned_rows(PeerRows<Wire> peers, OwnEntries<T> own, T* own_results, const Index* rows,
                               const std::int64_t* count, const std::int32_t* places, std::int64_t most,
                               std::int64_t features) {
  using Elements = Vec16<Wire, kWidth>;
  const std::int64_t vectors = features / kWidth;
  for (std::int64_t g = blockIdx.x; g < *count; g += gridDim.x) {
    const std::uint32_t contributors = contributors_of(places, most, g, peers.ranks);
    if (contributors == 0 || owner_of(contributors, rows[g]) != own.rank) continue;
    for (std::int64_t vector = threadIdx.x; vector < vectors; vector += blockDim.x) {
      float sum[kWidth] = {};
      add_in_order(peers, own, contributors, places, most, g, vector, vectors, sum);
      Elements sent;
      Vec16<T, kWidth> kept;  // the same number: all ranks have the same bits
      for (int i = 0; i < kWidth; ++i) {
        sent.element[i] = static_cast<Wire>(sum[i]);
        kept.element[i] = static_cast<T>(static_cast<float>(sent.element[i]));
      }
      for (int rank = 0; rank < peers.ranks; ++rank) {
        if (rank != own.rank) reinterpret_cast<Elements*>(peers.results[rank])[g * vectors + vector] = sent;
      }
      reinterpret_cast<Vec16<T, kWidth>*>(own_results)[g * vectors + vector] = kept;
    }
  }
}

/// results[g] = arrived[g], for all rows that other ranks have added up: in a wider type.
template <SparseIndex Index, Floating Wire, Floating T>
__global__ void widen_rows(const Wire* arrived, int ranks, int own, const Index* rows, std::int64_t count,
                           const std::int32_t* places, std::int64_t most, std::int64_t features, T* results) {
  for (std::int64_t g = blockIdx.x; g < count; g += gridDim.x) {
    if (owner_of(contributors_of(places, most, g, ranks), rows[g]) == own) continue;
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      results[g * features + feature] = static_cast<T>(static_cast<float>(arrived[g * features + feature]));
  }
}

/// A rank's part in the rows of a call.
struct OwnedRows {
  std::int64_t owned = 0;   ///< rows that it adds up
  std::int64_t pulled = 0;  ///< rows of other ranks that it reads for that
  std::int64_t given = 0;   ///< own rows that others read
};

/// Each row added up by one of the ranks that have it. Rows travel as `Wire`: T itself, or a narrower type.
template <SparseIndex Index, Floating T, Floating Wire>
class OwnersAmongContributors {
 public:
  /// The relative error of a rounding to Wire; 0 if rows travel as they are.
  static constexpr double kWireRoundoff =
      std::same_as<Wire, T> ? 0 : 1 / static_cast<double>(largest_integer<Wire>());

  /// See WayToAdd. Throws as PeerBuffer and Signals do.
  OwnersAmongContributors(Rank& rank, SparseShape shape, std::int64_t max_local, std::int64_t max_global)
      : rank_(rank),
        features_(shape.features),
        sums_(rank, shape.elements(max_local)),
        results_(rank, shape.elements(max_global)),
        meetings_(rank, kMeetings),
        widened_(rank.device(), kNarrow ? shape.elements(max_global) : 0) {
    by_width<Wire>(features_, [](auto width) {
      load_kernel(sum_given_rows<width(), AmongContributors, Index, Wire, T>);
      load_kernel(add_owned_rows<width(), Index, Wire, T>);
    });
    if constexpr (kNarrow) load_kernel(widen_rows<Index, Wire, T>);
    rank.barrier();  // no stream waits before all ranks have loaded their kernels
  }

  /// See WayToAdd.
  void sum_given(const OwnEntries<T>& own, RowPlan<Index>& plan, cudaStream_t stream) {
    own_ = own;
    by_width<Wire>(features_, [&](auto width) {
      sum_given_rows<width()><<<blocks_for_warps(plan.max_global()), kBlockThreads, 0, stream>>>(
          own, AmongContributors(), rank_.size(), plan.rows(), plan.global(), plan.places(),
          plan.max_global(), features_, sums_.local());
    });
  }
  /// See WayToAdd.
  void add(RowPlan<Index>& plan, cudaStream_t stream) {
    meetings_.begin_call();
    // [task order: what must be there before the first row is read, and what before the result is used?]
    meetings_.meet(kSummed, stream);
    by_width<Wire>(features_, [&](auto width) {
      add_owned_rows<width()><<<blocks_for_rows(plan.max_global()), kBlockThreads, 0, stream>>>(
          peers(), own_, own_results(), plan.rows(), plan.global(), plan.places(), plan.max_global(),
          features_);
    });
    // All reads of this rank's rows are complete, too: the next call may write them.
    meetings_.meet(kAdded, stream);
    // [/task]
  }
  /// See WayToAdd.
  SparseRows<Index, T> finish(RowPlan<Index>& plan, const PlanCounts& counts, cudaStream_t stream) {
    if constexpr (kNarrow) {
      if (counts.global > 0) {
        widen_rows<<<blocks_for_rows(counts.global), kBlockThreads, 0, stream>>>(
            results_.local(), rank_.size(), rank_.id(), plan.rows(), counts.global, plan.places(),
            plan.max_global(), features_, widened_.data());
        CUDA_CHECK(cudaGetLastError());
      }
    }
    return {plan.rows(), own_results(), counts.global};
  }

  /// The cost of the sums of a call.
  static Cost cost(const SparseCall& call, OwnedRows rows = {}) {
    const std::int64_t row = call.features * std::int64_t{sizeof(Wire)};
    return {.bytes_out = row * (rows.given + (call.ranks - 1) * rows.owned),
            .bytes_in = row * (rows.pulled + call.global - rows.owned),
            .launches = kNarrow ? 2 : 1};
  }

 private:
  static constexpr bool kNarrow = !std::same_as<Wire, T>;

  /// The destination of this rank's own sums: its result.
  T* own_results() const {
    if constexpr (kNarrow) {
      return widened_.data();
    } else {
      return results_.local();
    }
  }

  /// The memory of all ranks.
  PeerRows<Wire> peers() const { return peer_rows(sums_, results_, rank_.size()); }

  static constexpr int kSummed = 0, kAdded = 1, kMeetings = 2;

  Rank& rank_;
  std::int64_t features_;
  OwnEntries<T> own_ = {};    // of this call
  PeerBuffer<Wire> sums_;     // [max_local, F]
  PeerBuffer<Wire> results_;  // [max_global, F]
  SignalBarrier meetings_;
  DeviceBuffer<T> widened_;  // [max_global, F] if Wire is narrower
};

/// Rows travel as they are.
template <SparseIndex Index, Floating T>
using ContributorOwners = OwnersAmongContributors<Index, T, T>;

/// Planned by every rank, added up by contributors.
template <SparseIndex Index, Floating T>
using ContributorOwnersAllReduce = PlannedAllReduce<Index, T, ContributorOwners>;

}  // namespace overlap::sparse_beyond
