// Chapter 08: the sum of row-sparse gradients on the CPU, through host memory that all ranks share. Only
// existing rows are copied, and every rank adds all of them.
//
// Sources: "Sparse All-Reduce in PyTorch" (Speechmatics), all_reduce_gloo(); PyTorch's ProcessGroupGloo,
// whose sparse all-reduce gathers all gradients on every rank and adds them one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "08_sparse_baselines/agreement.cuh"
#include "08_sparse_baselines/coalesce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/parallel.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_baselines {

/// Which row of two ascending lists each row of their union comes from: -1 where a list does not have it.
struct MergedRow {
  std::int64_t left = -1;   ///< in the first list
  std::int64_t right = -1;  ///< in the second one
};

/// The union of two ascending lists of row numbers. `indices` receives it; the result gives the source of
/// each row.
template <SparseIndex Index>
std::vector<MergedRow> merge_rows(const Index* left, std::int64_t left_count, const Index* right,
                                  std::int64_t right_count, std::vector<Index>& indices) {
  std::vector<MergedRow> rows;
  rows.reserve(static_cast<std::size_t>(left_count + right_count));
  indices.clear();
  indices.reserve(rows.capacity());
  // [task merge: which of the two lists is next, and when are both?]
  std::int64_t l = 0, r = 0;
  while (l < left_count || r < right_count) {
    const bool take_left = l < left_count && (r == right_count || left[l] <= right[r]);
    const bool take_right = r < right_count && (l == left_count || right[r] <= left[l]);
    indices.push_back(take_left ? left[l] : right[r]);
    rows.push_back({take_left ? l : -1, take_right ? r : -1});
    l += take_left ? 1 : 0;
    r += take_right ? 1 : 0;
  }
  // [/task]
  return rows;
}

/// out[i] = the sum of the rows rows[i] of `left` and `right`, which have `features` elements each. In f32,
/// rounded once. On all hardware threads.
template <Floating T>
void add_rows(const std::vector<MergedRow>& rows, std::int64_t features, const T* left, const T* right,
              T* out) {
  constexpr std::int64_t kSmallestShare = 1 << 16;  // elements: fewer are not worth a thread
  const auto share_rows = std::max<std::int64_t>(1, kSmallestShare / features);
  const auto add_share = [&](Range share) {
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const MergedRow& row = rows[static_cast<std::size_t>(i)];
      T* sum = out + i * features;
      // [task add: what is the sum of a row that only one of the two has?]
      if (row.left < 0 || row.right < 0) {
        std::copy_n(row.left < 0 ? right + row.right * features : left + row.left * features, features, sum);
        continue;
      }
      const T *a = left + row.left * features, *b = right + row.right * features;
      for (std::int64_t feature = 0; feature < features; ++feature)
        sum[feature] = from_float<T>(static_cast<float>(a[feature]) + static_cast<float>(b[feature]));
      // [/task]
    }
  };
  parallel_shares(static_cast<std::int64_t>(rows.size()), add_share, share_rows);
}

/// The sum over all ranks of a row-sparse gradient, on every rank, added up by the CPU in the order of the
/// ranks: the same bits in every run and on every rank. Ranks may share a GPU.
template <SparseIndex Index, Floating T>
class HostAllReduce {
 public:
  /// For tables of that shape. Memory grows with the calls. Collective.
  HostAllReduce(Rank& rank, SparseShape shape)
      : rank_(rank), shape_(shape), coalesce_(rank, shape), clock_(rank.device()) {}

  /// One call. `indices` [entries] and `values` [entries, F] are this rank's gradient, in any order; a row
  /// may have several entries. The result, the same on all ranks, has each row of any rank once, ascending;
  /// it is valid until the next call, in the order of `stream`. Collective. Throws SparseInputError on all
  /// ranks if the input of one cannot be reduced.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    host_waits_ = entries > 0 ? 1 : 0;
    clock_.start(stream, "coalesce");
    const SparseRows<Index, T> local =
        coalesce_.run(indices, values, too_many(entries) ? 0 : entries, stream);
    // Also a barrier: from here on no rank reads this rank's gradient of the previous call.
    agree(rank_, record_of<Index, T>(shape_, entries, coalesce_.bad_index()), clock_, stream);
    clock_.next(stream, "to_host");
    const SparseRows<Index, T> own = copy_to_host(local, stream);
    clock_.next(stream, "add");
    const SparseRows<Index, T> sum = add_all(rank_.exchange(own));
    clock_.next(stream, "to_gpu");
    const SparseRows<Index, T> result = copy_to_gpu(sum, stream);
    clock_.stop(stream);
    return result;
  }

  /// The phases of the last call on this rank. Only after a wait for the stream.
  std::vector<Phase> phases() const { return clock_.read(); }
  /// How often the last call made the host wait for its GPU.
  int host_waits() const { return host_waits_; }
  /// Rows without a place in the result: none, a merge keeps all.
  int lost_rows(cudaStream_t) const { return 0; }

  /// What a call costs a rank that has `local` different rows (and at least one entry); the result has
  /// `global`. Rows are copied with their numbers, to the host also the counts of coalesce. The host waits
  /// for the number of the rank's rows, and for the rows.
  static Cost cost(SparseShape shape, std::int64_t local, std::int64_t global) {
    const auto numbered = static_cast<std::int64_t>(shape.elements(1) * sizeof(T) + sizeof(Index));
    return {.bytes_to_host = local * numbered + 2 * static_cast<std::int64_t>(sizeof(std::int32_t)),
            .bytes_from_host = global * numbered,
            .host_waits = 2};
  }
  /// The bytes that the adds of one rank read and write, if each of `ranks` ranks has `local` rows, and no
  /// two ranks have a row in common.
  static std::int64_t bytes_added(SparseShape shape, int ranks, std::int64_t local) {
    std::int64_t rows = 0;  // the sum so far is read, and a gradient; their union is written
    for (int i = 1; i < ranks; ++i) rows += i * local + local + (i + 1) * local;
    return static_cast<std::int64_t>(shape.elements(rows) * sizeof(T));
  }

 private:
  // ---- Step 1: the rank's rows to host memory, which the other ranks can read ----------------------------
  SparseRows<Index, T> copy_to_host(const SparseRows<Index, T>& local, cudaStream_t stream) {
    if (local.count > 0) {
      const auto count = static_cast<std::size_t>(local.count);
      own_indices_.at_least(count);
      own_values_.at_least(shape_.elements(local.count));
      CUDA_CHECK(cudaMemcpyAsync(own_indices_.data(), local.indices, count * sizeof(Index),
                                 cudaMemcpyDeviceToHost, stream));
      CUDA_CHECK(cudaMemcpyAsync(own_values_.data(), local.values, shape_.elements(local.count) * sizeof(T),
                                 cudaMemcpyDeviceToHost, stream));
    }
    // Also without rows: the stream may still copy the previous call's result, which is overwritten next.
    ++host_waits_;
    rank_.synchronize(stream);
    return {own_indices_.data(), own_values_.data(), local.count};
  }

  // ---- Step 2: the sum of all gradients, one after the other ---------------------------------------------
  SparseRows<Index, T> add_all(const std::vector<SparseRows<Index, T>>& gradients) {
    SparseRows<Index, T> sum = gradients.front();
    // [task order: why does every rank begin with rank 0, and not with itself?]
    for (std::size_t other = 1; other < gradients.size(); ++other) {
      const bool last = other + 1 == gradients.size();
      sum = add(sum, gradients[other], last, partial_[other % 2]);
    }
    // [/task]
    return sum;
  }

  /// A partial sum that is not the last.
  struct Partial {
    std::vector<Index> indices;
    std::unique_ptr<T[]> values;
    std::size_t room = 0;  // elements; contents are lost when it grows
    T* at_least(std::size_t elements) {
      if (elements > room) values = std::make_unique_for_overwrite<T[]>(room = elements);
      return values.get();
    }
  };

  /// The sum of two. The last sum is written into the pinned memory that the GPU copies.
  SparseRows<Index, T> add(const SparseRows<Index, T>& left, const SparseRows<Index, T>& right, bool last,
                           Partial& to) {
    const std::vector<MergedRow> rows =
        merge_rows(left.indices, left.count, right.indices, right.count, to.indices);
    const auto count = static_cast<std::int64_t>(rows.size());
    T* values = last ? sum_.at_least(shape_.elements(count)) : to.at_least(shape_.elements(count));
    add_rows(rows, shape_.features, left.values, right.values, values);
    backend::host_work(shape_.elements(left.count + right.count + count) * sizeof(T));
    return {to.indices.data(), values, count};
  }

  // ---- Step 3: the sum to the GPU ------------------------------------------------------------------------
  SparseRows<Index, T> copy_to_gpu(const SparseRows<Index, T>& sum, cudaStream_t stream) {
    if (sum.count == 0) return {};
    const auto count = static_cast<std::size_t>(sum.count);
    Index* indices = indices_.at_least(count, stream);
    T* values = values_.at_least(shape_.elements(sum.count), stream);
    CUDA_CHECK(cudaMemcpyAsync(indices, sum.indices, count * sizeof(Index), cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaMemcpyAsync(values, sum.values, shape_.elements(sum.count) * sizeof(T),
                               cudaMemcpyHostToDevice, stream));
    return {indices, values, sum.count};
  }

  Rank& rank_;
  SparseShape shape_;
  Coalesce<Index, T> coalesce_;
  GrowingPinnedBuffer<Index> own_indices_;  // this rank's gradient, read by all
  GrowingPinnedBuffer<T> own_values_;
  Partial partial_[2];  // alternating: one is read while the other is written
  GrowingPinnedBuffer<T> sum_;
  GrowingBuffer<Index> indices_{rank_};
  GrowingBuffer<T> values_{rank_};
  PhaseClock clock_;
  int host_waits_ = 0;
};

}  // namespace overlap::sparse_baselines
