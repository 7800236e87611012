// Chapter 15, reduce-scatter only: each row of the table has one permanent owner, which holds its optimiser
// state. Owners sum all ranks' contributions to their rows, and keep the sums. Of N rows of all ranks a rank
// receives about (N - n_r) / P, and nothing is sent back. The rows that the next step needs are fetched from
// the owners when their numbers are known: n_r (P - 1) / P rows.
#pragma once

#include <cuda_runtime.h>

#include <cub/device/device_scan.cuh>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "08_sparse_baselines/coalesce.cuh"
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/own_rows.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signal_barrier.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_beyond {

/// The owner of a row: the same in each call, whichever ranks have the row. A hash, so that neither
/// neighbouring rows nor every 32nd row are all on one rank.
__host__ __device__ constexpr int home_of(std::int64_t row, int ranks) {
  return static_cast<int>(mix(static_cast<std::uint64_t>(row)) % static_cast<std::uint64_t>(ranks));
}

/// The permanent owner of a row, for sum_given_rows().
struct AtHome {
  int ranks;  ///< how many
  /// See home_of().
  __device__ int operator()(std::uint32_t /*contributors*/, std::int64_t row) const {
    return home_of(row, ranks);
  }
};

// ---- The plan's second part: the place of each row among its owner's --------------------------------------

/// flags[owner * most + g] = 1 if that rank owns the g-th row of all, else 0; and one 0 after all of them.
template <SparseIndex Index>
__global__ void flag_homes(const Index* rows, const std::int64_t* count, std::int64_t most, int ranks,
                           std::int32_t* flags) {
  const std::int64_t i = thread_of_grid();
  if (i > ranks * most) return;
  const std::int64_t g = i % most;
  flags[i] = i < ranks * most && g < *count && home_of(rows[g], ranks) == i / most;
}

/// A rank's own rows, and the places of all rows.
template <SparseIndex Index>
struct Homes {
  std::int32_t* at_home;  ///< [most]: the place of the g-th row of all among those of its owner
  std::int32_t* owned;    ///< [most]: g of each row that this rank owns, ascending
  Index* rows;            ///< [most]: the numbers of these rows
  std::int64_t* count;    ///< how many they are
};

/// Writes all that from the scanned flags: below[i] is the sum of all flags before i.
template <SparseIndex Index>
__global__ void list_homes(const Index* rows, const std::int64_t* count, const std::int32_t* below,
                           std::int64_t most, int ranks, int own, Homes<Index> homes) {
  const std::int64_t g = thread_of_grid();
  if (g == 0) *homes.count = below[(own + 1) * most] - below[own * most];
  if (g >= *count) return;
  const int home = home_of(rows[g], ranks);
  const std::int32_t place = below[home * most + g] - below[home * most];
  homes.at_home[g] = place;
  if (home != own) return;
  homes.owned[place] = static_cast<std::int32_t>(g);
  homes.rows[place] = rows[g];
}

// ---- The sums, and the fetch ------------------------------------------------------------------------------

/// results[i] = the i-th row that this rank owns, summed over the ranks that have it: see add_in_order(). A
/// block loops over rows.
template <int kWidth, SparseIndex Index, Floating T>
__global__ void add_rows_at_home(PeerRows<T> peers, OwnEntries<T> own, Homes<Index> homes,
                                 const std::int32_t* places, std::int64_t most, std::int64_t features,
                                 T* results) {
  const std::int64_t vectors = features / kWidth;
  for (std::int64_t i = blockIdx.x; i < *homes.count; i += gridDim.x) {
    const std::int64_t g = homes.owned[i];
    const std::uint32_t contributors = contributors_of(places, most, g, peers.ranks);
    for (std::int64_t vector = threadIdx.x; vector < vectors; vector += blockDim.x) {
      float sum[kWidth] = {};
      add_in_order(peers, own, contributors, places, most, g, vector, vectors, sum);
      Vec16<T, kWidth> result;
      for (int e = 0; e < kWidth; ++e) result.element[e] = static_cast<T>(sum[e]);
      reinterpret_cast<Vec16<T, kWidth>*>(results)[i * vectors + vector] = result;
    }
  }
}

/// fetched[j] = row j of this rank's rows, read from its owner; fetched_rows[j] = its number. peers.results
/// are the rows of each owner; own_places is where this rank has the g-th row of all, or -1.
template <int kWidth, SparseIndex Index, Floating T>
__global__ void fetch_rows(PeerRows<T> peers, const Index* rows, const std::int64_t* count,
                           const std::int32_t* at_home, const std::int32_t* own_places, std::int64_t features,
                           Index* fetched_rows, T* fetched) {
  using Elements = Vec16<T, kWidth>;
  const std::int64_t vectors = features / kWidth;
  for (std::int64_t g = blockIdx.x; g < *count; g += gridDim.x) {
    const std::int64_t place = own_places[g];
    if (place < 0) continue;
    if (threadIdx.x == 0) fetched_rows[place] = rows[g];
    const Elements* there = reinterpret_cast<const Elements*>(peers.results[home_of(rows[g], peers.ranks)]) +
                            at_home[g] * vectors;
    for (std::int64_t vector = threadIdx.x; vector < vectors; vector += blockDim.x)
      reinterpret_cast<Elements*>(fetched)[place * vectors + vector] = there[vector];
  }
}

/// Each row is summed on its owner, and stays there.
template <SparseIndex Index, Floating T>
class FixedOwners {
 public:
  /// See WayToAdd. Allocates for the worst case: one rank owns all rows. Throws as PeerBuffer and Signals do,
  /// and UsageError if P times the rows of all could be more than 2^31.
  FixedOwners(Rank& rank, SparseShape shape, std::int64_t max_local, std::int64_t max_global)
      : rank_(rank),
        features_(shape.features),
        most_(max_global),
        below_(rank.device(), flags(rank.size(), max_global)),
        at_home_(rank.device(), static_cast<std::size_t>(max_global)),
        owned_(rank.device(), static_cast<std::size_t>(max_global)),
        rows_(rank.device(), static_cast<std::size_t>(max_global)),
        count_(rank.device(), 1),
        count_on_host_(1),
        sums_(rank, shape.elements(max_local)),
        results_(rank, shape.elements(max_global)),
        meetings_(rank, kMeetings) {
    by_width<T>(features_, [](auto width) {
      load_kernel(sum_given_rows<width(), AtHome, Index, T, T>);
      load_kernel(add_rows_at_home<width(), Index, T>);
      load_kernel(fetch_rows<width(), Index, T>);
    });
    rank.barrier();  // no stream waits before all ranks have loaded their kernels
  }

  /// Whether this rank owns a row: then its result has the sum.
  bool keeps(std::int64_t row) const { return home_of(row, rank_.size()) == rank_.id(); }

  /// See WayToAdd.
  void plan_more(RowPlan<Index>& plan, cudaStream_t stream) {
    const auto all = static_cast<std::int64_t>(below_.size());
    flag_homes<<<blocks_for(all), kBlockThreads, 0, stream>>>(plan.rows(), plan.global(), most_, rank_.size(),
                                                              below_.data());
    CUDA_CHECK(cudaGetLastError());
    sparse_baselines::with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, bytes, below_.data(), below_.data(),
                                           static_cast<int>(all), stream);
    });
    list_homes<<<blocks_for(most_), kBlockThreads, 0, stream>>>(plan.rows(), plan.global(), below_.data(),
                                                                most_, rank_.size(), rank_.id(), homes());
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(count_on_host_.data(), count_.data(), count_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
  }
  /// See WayToAdd.
  void sum_given(const OwnEntries<T>& own, RowPlan<Index>& plan, cudaStream_t stream) {
    own_ = own;
    by_width<T>(features_, [&](auto width) {
      sum_given_rows<width()><<<blocks_for_warps(most_), kBlockThreads, 0, stream>>>(
          own, AtHome{rank_.size()}, rank_.size(), plan.rows(), plan.global(), plan.places(), most_,
          features_, sums_.local());
    });
  }
  /// See WayToAdd.
  void add(RowPlan<Index>& plan, cudaStream_t stream) {
    meetings_.begin_call();
    meetings_.meet(kSummed, stream);  // also after all fetches of the previous call
    by_width<T>(features_, [&](auto width) {
      add_rows_at_home<width()><<<blocks_for_rows(most_), kBlockThreads, 0, stream>>>(
          peers(), own_, homes(), plan.places(), most_, features_, results_.local());
    });
    meetings_.meet(kAdded, stream);
  }
  /// See WayToAdd. The result: the rows that this rank owns.
  SparseRows<Index, T> finish(RowPlan<Index>&, const PlanCounts&, cudaStream_t) const {
    return {rows_.data(), results_.local(), count_on_host_[0]};
  }
  /// Enqueues the fetch of this rank's rows from their owners, to `rows` [n_r] and `values` [n_r, F].
  void fetch(RowPlan<Index>& plan, Index* rows, T* values, cudaStream_t stream) {
    by_width<T>(features_, [&](auto width) {
      fetch_rows<width()><<<blocks_for_rows(most_), kBlockThreads, 0, stream>>>(
          peers(), plan.rows(), plan.global(), at_home_.data(), plan.places() + rank_.id() * most_, features_,
          rows, values);
    });
  }

  /// The cost of the sums of a call. The rows that a rank pulls count as given by the others.
  static Cost cost(const SparseCall& call, OwnedRows rows = {}) {
    const std::int64_t row = call.features * std::int64_t{sizeof(T)};
    return {.bytes_out = row * rows.given, .bytes_in = row * rows.pulled, .launches = 1};
  }
  /// The cost of the fetch: the same rows in the other direction.
  static Cost fetch_cost(const SparseCall& call, OwnedRows rows) {
    const std::int64_t row = call.features * std::int64_t{sizeof(T)};
    return {.bytes_out = row * rows.pulled, .bytes_in = row * rows.given, .launches = 1};
  }

 private:
  /// One flag for each rank and row, and one more.
  static std::size_t flags(int ranks, std::int64_t max_global) {
    if (max_global > (std::numeric_limits<std::int32_t>::max() - 1) / ranks) {
      throw UsageError("--entries: " + std::to_string(ranks) + " ranks with " + std::to_string(max_global) +
                       " rows in all are too many for one scan");
    }
    return static_cast<std::size_t>(ranks * max_global) + 1;
  }

  Homes<Index> homes() const { return {at_home_.data(), owned_.data(), rows_.data(), count_.data()}; }
  PeerRows<T> peers() const { return peer_rows(sums_, results_, rank_.size()); }

  static constexpr int kSummed = 0, kAdded = 1, kMeetings = 2;

  Rank& rank_;
  std::int64_t features_, most_;
  OwnEntries<T> own_ = {};                      // of this call
  DeviceBuffer<std::int32_t> below_;            // [P][most] and one more: flags, then how many are set before
  DeviceBuffer<std::int32_t> at_home_, owned_;  // [most]
  DeviceBuffer<Index> rows_;                    // [most]
  DeviceBuffer<std::int64_t> count_;
  PinnedBuffer<std::int64_t> count_on_host_;
  PeerBuffer<T> sums_;     // [max_local, F]
  PeerBuffer<T> results_;  // [max_global, F]: the rows that live here
  SignalBarrier meetings_;
  GrowingBuffer<std::byte> temporary_{rank_};
};

/// The same, and then each rank fetches the rows of the next step: here those of this one, with the sums in
/// place of the optimiser's new rows. So everything can be compared.
template <SparseIndex Index, Floating T>
class FixedOwnersFetch {
 public:
  /// The result has the rank's own rows only.
  static constexpr bool kOwnRowsOnly = true;

  /// See FixedOwners.
  FixedOwnersFetch(Rank& rank, SparseShape shape, std::int64_t max_local, std::int64_t max_global)
      : own_(rank.id()),
        owners_(rank, shape, max_local, max_global),
        rows_(rank.device(), static_cast<std::size_t>(max_local)),
        fetched_(rank.device(), shape.elements(max_local)) {}

  /// See WayToAdd.
  void sum_given(const OwnEntries<T>& own, RowPlan<Index>& plan, cudaStream_t stream) {
    owners_.sum_given(own, plan, stream);
  }
  void plan_more(RowPlan<Index>& plan, cudaStream_t stream) {
    owners_.plan_more(plan, stream);
  }                                                                                   ///< see there
  void add(RowPlan<Index>& plan, cudaStream_t stream) { owners_.add(plan, stream); }  ///< see there
  /// See WayToAdd.
  SparseRows<Index, T> finish(RowPlan<Index>&, const PlanCounts& counts, cudaStream_t) const {
    return {rows_.data(), fetched_.data(), counts.local[static_cast<std::size_t>(own_)]};
  }
  /// Enqueues the fetch, after the sums.
  void fetch(RowPlan<Index>& plan, cudaStream_t stream) {
    owners_.fetch(plan, rows_.data(), fetched_.data(), stream);
  }

  /// The cost of the sums and of the fetch of a call.
  static Cost cost(const SparseCall& call, OwnedRows rows = {}) {
    Cost cost = FixedOwners<Index, T>::cost(call, rows);
    const Cost fetch = FixedOwners<Index, T>::fetch_cost(call, rows);
    cost.bytes_out += fetch.bytes_out;
    cost.bytes_in += fetch.bytes_in;
    cost.launches += fetch.launches;
    return cost;
  }

 private:
  int own_;
  FixedOwners<Index, T> owners_;
  DeviceBuffer<Index> rows_;  // [max_local]
  DeviceBuffer<T> fetched_;   // [max_local, F]
};

/// Planned by every rank, summed and kept on the owner.
template <SparseIndex Index, Floating T>
using ReduceScatter = PlannedAllReduce<Index, T, FixedOwners>;
/// The same, and the rows of the next step fetched.
template <SparseIndex Index, Floating T>
using ReduceScatterFetch = PlannedAllReduce<Index, T, FixedOwnersFetch>;

}  // namespace overlap::sparse_beyond
