// Experiment of chapter 15: range owners whose plan is made before any value exists, and whose rows are sent
// in chunks, each as soon as it is ready.
//
//   rank's stream   forward | backward 0 | backward 1 | backward 2 |
//   first stream    plan    |            | send 0     | send 1     | send 2
//   second stream           |            |    add 0   |    add 1   |    add 2
//
// A chunk is one of equal parts of the table: of its rows each rank owns a P-th, as in range_owners.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "08_sparse_baselines/agreement.cuh"
#include "08_sparse_baselines/coalesce.cuh"
#include "09_sparse_v1_nonzero/ranks_agree.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/range_owners.cuh"
#include "15_sparse_beyond/row_plan.cuh"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::sparse_beyond {

/// Chunks, by default.
inline constexpr int kChunks = 4;

/// Where the rows of an owner begin.
struct Cut {
  std::int64_t global;  ///< among the rows of all
  std::int64_t local;   ///< among this rank's
};

/// cuts[chunk * ranks + owner] = the first row of the chunk that this owner adds up; one more, for the end.
/// A thread looks for one of them.
template <SparseIndex Index>
__global__ void find_cuts(const Index* rows, const std::int64_t* global, const Index* own,
                          const std::int32_t* found, std::int64_t table_rows, int chunks, int ranks,
                          Cut* cuts) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > chunks * ranks) return;
  const auto begin_of = [&](int chunk) {
    if (chunk >= chunks) return *global;
    return lower_bound(rows, *global, static_cast<Index>(range_begin(table_rows, chunks, chunk)));
  };
  const std::int64_t begin = begin_of(i / ranks), count = begin_of(i / ranks + 1) - begin;
  const std::int64_t g = begin + range_begin(count, ranks, i % ranks);
  cuts[i] = {g, g < *global ? lower_bound(own, *found, rows[g]) : *found};
}

/// As sum_entries() of chapter 08, for the rows from `first` to `last` alone.
template <Floating T>
__global__ void sum_rows(const T* values, const std::int32_t* sorted, const std::int32_t* begins,
                         const std::int32_t* lengths, std::int64_t first, std::int64_t last,
                         std::int64_t features, T* sums) {
  for (std::int64_t row = first + blockIdx.x; row < last; row += gridDim.x) {
    const std::int32_t* entries = sorted + begins[row];
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x) {
      float sum = static_cast<float>(values[entries[0] * features + feature]);
      for (std::int32_t i = 1; i < lengths[row]; ++i)
        sum += static_cast<float>(values[entries[i] * features + feature]);
      sums[row * features + feature] = static_cast<T>(sum);
    }
  }
}

/// The sum over all ranks of a row-sparse gradient, on every rank. A call is plan(), ready() once for each
/// chunk, and reduce(), all on the same stream. None of them waits for values.
template <SparseIndex Index, Floating T>
class ChunkedAllReduce {
 public:
  /// As PlannedAllReduce, in so many chunks.
  ChunkedAllReduce(Rank& rank, SparseShape shape, int chunks = kChunks)
      : rank_(rank),
        ring_(rank),
        shape_(RowPlan<Index>::checked(rank, shape)),
        chunks_(chunks),
        pitch_(static_cast<std::int64_t>(shape.elements(RowPlan<Index>::room(shape)))),
        slots_(rank, static_cast<std::size_t>(rank.size() * pitch_)),
        results_(rank, static_cast<std::size_t>(rank.size() * pitch_)),
        signals_(rank, 2 * chunks * rank.size()),
        local_(rank.device(), static_cast<std::size_t>(pitch_)),
        cuts_(rank.device(), static_cast<std::size_t>(chunks * rank.size() + 1)),
        cuts_on_host_(cuts_.size()),
        coalesce_(rank, shape),
        plan_(rank, shape) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      ready_.emplace_back(rank.device(), cudaEventDisableTiming);
      sent_.emplace_back(rank.device(), cudaEventDisableTiming);
    }
    load_kernel(sum_rows<T>);
    load_kernel(add_range<T>);
    rank.barrier();  // no stream waits before all ranks have loaded their kernels
  }
  ChunkedAllReduce(const ChunkedAllReduce&) = delete;
  ChunkedAllReduce& operator=(const ChunkedAllReduce&) = delete;

  /// Finds the rows, and who sums each. Ordered after the earlier work of `stream`, but not enqueued on it:
  /// later work of `stream` runs beside it. Only enqueues, with a barrier of the hosts. Collective.
  void plan(const Index* indices, std::int64_t entries, cudaStream_t stream) {
    const TimelineScope name("plan");
    sparse_baselines::agree(rank_, sparse_baselines::record_of<Index, T>(shape_, entries, false));
    CUDA_CHECK(cudaEventRecord(begun_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(sends(), begun_));
    coalesce_.find(indices, entries, sends());
    plan_.build(coalesce_.found_rows(), coalesce_.found(), sends());
    find_cuts<<<blocks_for(std::ssize(cuts_on_host_)), kBlockThreads, 0, sends()>>>(
        plan_.rows(), plan_.global(), coalesce_.found_rows(), coalesce_.found(), shape_.rows, chunks_,
        rank_.size(), cuts_.data());
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(
        cudaMemcpyAsync(cuts_on_host_.data(), cuts_.data(), cuts_.bytes(), cudaMemcpyDeviceToHost, sends()));
    plan_.publish(sends());
  }

  /// The rows that this chunk has: those of the table from `begin` on, and not those from `end` on.
  Range table_rows(int chunk) const {
    return {range_begin(shape_.rows, chunks_, chunk), range_begin(shape_.rows, chunks_, chunk + 1)};
  }
  /// Declares that the work now in `stream` writes all entries of the chunk's rows.
  void ready(int chunk, cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(ready_[chunk], stream)); }

  /// The sum of `values`, which lie as the indices of plan() do. The host waits for the plan, not for any
  /// chunk. Throws SparseInputError as PlannedAllReduce does. Collective.
  SparseRows<Index, T> reduce(const T* values, cudaStream_t stream) {
    waits_.reset();
    counts_ = plan_.wait(waits_);
    plan_.require_room(counts_);
    signals_.begin_call();
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      send(chunk, values);
      add(chunk);
    }
    CUDA_CHECK(cudaEventRecord(added_, adds()));
    CUDA_CHECK(cudaStreamWaitEvent(stream, added_));
    return {plan_.rows(), results_.local(), counts_.global};
  }

  /// All of it, of values that are there: see SparseAllReduce.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    plan(indices, entries, stream);
    for (int chunk = 0; chunk < chunks_; ++chunk) ready(chunk, stream);
    return reduce(values, stream);
  }

  /// How often the last call made the host wait for the GPU.
  int host_waits() const { return waits_.count(); }
  /// Rows of this rank without a place in the last call's result: other than 0 is an error of the plan.
  int lost_rows(cudaStream_t stream) { return plan_.lost_rows(counts_, stream); }

 private:
  cudaStream_t sends() { return rank_.transfer_stream(0); }
  cudaStream_t adds() { return rank_.transfer_stream(1); }

  // ---- First stream: this rank's rows of a chunk, each once, to their owners -----------------------------
  void send(int chunk, const T* values) {
    const TimelineScope name("send chunk ", chunk);
    CUDA_CHECK(cudaStreamWaitEvent(sends(), ready_[chunk]));
    const std::int64_t first = cut(chunk, 0).local, last = cut(chunk + 1, 0).local;
    if (first < last) {
      sum_rows<<<blocks_for_rows(last - first), kBlockThreads, 0, sends()>>>(
          values, coalesce_.sorted_entries(), coalesce_.begins(), coalesce_.lengths(), first, last,
          shape_.features, local_.data());
      CUDA_CHECK(cudaGetLastError());
    }
    for (int i = 1; i <= rank_.size(); ++i) {  // the right neighbour first: each is sent to by one at a time
      const int owner = ring_.at(i);
      const std::int64_t begin = cut(chunk, owner).local;
      copy(slots_.on(owner) + rank_.id() * pitch_, local_.data(), begin, cut(chunk, owner + 1).local,
           sends());
      if (owner != rank_.id()) signals_.raise(owner, signal(kSent, chunk, rank_.id()), sends());
    }
    CUDA_CHECK(cudaEventRecord(sent_[chunk], sends()));
  }

  // ---- Second stream: the sums of what this rank owns of it, and these to all others --------------------
  void add(int chunk) {
    const TimelineScope name("add chunk ", chunk);
    CUDA_CHECK(cudaStreamWaitEvent(adds(), sent_[chunk]));  // its own rows
    await(kSent, chunk);
    const std::int64_t begin = cut(chunk, rank_.id()).global, end = cut(chunk, rank_.id() + 1).global;
    if (begin < end) {
      add_range<<<blocks_for_rows(end - begin), kBlockThreads, 0, adds()>>>(
          RangeSlots<T>{slots_.local(), pitch_, rank_.size(), {}}, plan_.places(), plan_.max_global(), begin,
          end, shape_.features, results_.local());
      CUDA_CHECK(cudaGetLastError());
    }
    for (int i = 1; i < rank_.size(); ++i) {
      copy(results_.on(ring_.at(i)), results_.local(), begin, end, adds());
      signals_.raise(ring_.at(i), signal(kAdded, chunk, rank_.id()), adds());
    }
    await(kAdded, chunk);
  }

  /// Where an owner's rows of a chunk begin; those of owner P are the next chunk's.
  const Cut& cut(int chunk, int owner) const {
    return cuts_on_host_[static_cast<std::size_t>(chunk * rank_.size() + owner)];
  }

  /// The rows `begin` to `end` of `from`, to the same place of `to`.
  void copy(T* to, const T* from, std::int64_t begin, std::int64_t end, cudaStream_t stream) const {
    if (begin == end) return;
    CUDA_CHECK(cudaMemcpyAsync(to + begin * shape_.features, from + begin * shape_.features,
                               shape_.elements(end - begin) * sizeof(T), cudaMemcpyDefault, stream));
  }

  int signal(int kind, int chunk, int raising) const {
    return (kind * chunks_ + chunk) * rank_.size() + raising;
  }
  /// All others' signals of this kind.
  void await(int kind, int chunk) {
    for (int i = 1; i < rank_.size(); ++i) signals_.await(signal(kind, chunk, ring_.at(i)), adds());
  }

  static constexpr int kSent = 0, kAdded = 1;

  Rank& rank_;
  Ring ring_;
  SparseShape shape_;
  int chunks_;
  std::int64_t pitch_;      // elements of a slot
  PeerBuffer<T> slots_;     // [P][max_local, F]: what each rank has sent, each row at its place there
  PeerBuffer<T> results_;   // [max_global, F]
  Signals signals_;         // [kind][chunk][raising rank]
  DeviceBuffer<T> local_;   // [max_local, F]
  DeviceBuffer<Cut> cuts_;  // [chunk][owner], and the end
  PinnedBuffer<Cut> cuts_on_host_;
  sparse_baselines::Coalesce<Index, T> coalesce_;
  RowPlan<Index> plan_;
  PlanCounts counts_;  // of the last call
  sparse_nonzero::HostWaits waits_{rank_};
  std::vector<Event> ready_, sent_;  // by chunk
  Event begun_{rank_.device(), cudaEventDisableTiming}, added_{rank_.device(), cudaEventDisableTiming};
};

}  // namespace overlap::sparse_beyond
