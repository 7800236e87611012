// Chapter 11, version 3: version 2's loop recorded once as a CUDA graph, and from then on launched by one
// call. A graph keeps the addresses, sizes and number of kernels of its recording. So it works on lists of
// fixed length, padded with numbers that are no rows.
//
// Source: "Sparse All-Reduce in PyTorch" (Speechmatics), "v3: CUDA Graphs", here with two capacities where
// the article has one.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_sparse_v2_where/where.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/graph.hpp"
#include "overlap/gpu/host_timer.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_graph {

/// How many rows a recorded graph has room for, the same on all ranks.
struct SparseCapacity {
  std::int64_t local = 0;   ///< capL, rows of one rank: iterations of the loop
  std::int64_t global = 0;  ///< capG, different rows of all ranks: compared in each iteration

  /// Equal in both.
  bool operator==(const SparseCapacity&) const = default;

  /// Room for every gradient of that shape on so many ranks: capG is P times capL, but no more than the
  /// table. Each is 1 at least, since no kernel has 0 blocks.
  static SparseCapacity of(SparseShape shape, int ranks) {
    const std::int64_t local = std::max<std::int64_t>(shape.entries, 1);
    return {local, std::max<std::int64_t>(std::min(shape.rows, ranks * local), 1)};
  }
};

/// The bytes of padding. As signed numbers both are negative, which no row is. They differ; otherwise the
/// padding of one list would match that of the other.
inline constexpr int kLocalPad = 0xFF;
inline constexpr int kGlobalPad = 0xFE;  ///< see kLocalPad

/// sources[g] = dummy, for all g < count.
__global__ void reset_sources(std::int32_t* sources, std::int64_t count, std::int32_t dummy) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (g < count) sources[g] = dummy;
}

/// values_out[g] = values[sources[g]], for all g < count. A block loops over rows, a thread takes every
/// blockDim-th feature.
template <Floating T>
__global__ void gather_rows(const T* values, const std::int32_t* sources, std::int64_t count,
                            std::int64_t features, T* values_out) {
  // [task gather: from where does each row of the result come?]
  for (std::int64_t row = blockIdx.x; row < count; row += gridDim.x) {
    const T* source = values + sources[row] * features;
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      values_out[row * features + feature] = source[feature];
  }
  // [/task]
}

/// Adds to `lost` the local rows that are the source of no global one, and the places, among all `capacity`
/// ones, whose source is another row than theirs. `dummy`: no source.
template <SparseIndex Index, Floating T>
__global__ void count_lost(SparseRows<Index, T> local, SparseRows<Index, T> global,
                           const std::int32_t* sources, std::int64_t capacity, std::int32_t dummy,
                           int* lost) {
  const std::int64_t place = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  // All of the rank's rows count as lost until they are found.
  if (place == 0) atomicAdd(lost, static_cast<int>(local.count));
  if (place >= capacity || sources[place] == dummy) return;
  const std::int32_t row = sources[place];
  const bool right = place < global.count && row < local.count && local.indices[row] == global.indices[place];
  atomicAdd(lost, right ? -1 : 1);
}

/// The third step of version 3: the graph, and the memory that it reads and writes.
template <SparseIndex Index, Floating T>
class GraphWriter {
 public:
  /// Throws std::invalid_argument, on all ranks, if a capacity is below 1 or above 2^31 - 2, or if ranks
  /// differ in one. Collective: the all-reduce calls it before it allocates anything.
  static void check(Rank& rank, SparseShape, SparseCapacity capacity) {
    for (const SparseCapacity& other : rank.exchange(capacity)) {
      if (std::min(other.local, other.global) < 1 || std::max(other.local, other.global) > INT32_MAX - 1)
        throw std::invalid_argument("a graph's capacities are between 1 and 2^31 - 2");
      if (other != capacity) throw std::invalid_argument("the ranks have graphs of different capacities");
    }
  }
  /// The same for the capacity of the shape.
  static void check(Rank& rank, SparseShape shape) {
    check(rank, shape, SparseCapacity::of(shape, rank.size()));
  }

  /// Room for shape.entries rows of each rank, whatever they are. As below.
  explicit GraphWriter(const sparse_nonzero::SparseFrame& frame)
      : GraphWriter(frame, SparseCapacity::of(frame.shape, frame.rank.size())) {}
  /// Records the graph, and launches it once. Throws CudaError if there is too little memory, of which the
  /// graph's own nodes need some.
  GraphWriter(const sparse_nonzero::SparseFrame& frame, SparseCapacity capacity)
      : frame_(frame),
        capacity_(capacity),
        local_indices_(frame.rank.device(), static_cast<std::size_t>(capacity.local)),
        global_indices_(frame.rank.device(), static_cast<std::size_t>(capacity.global)),
        steps_(frame.rank.device(), local_indices_.size()),
        flags_(frame.rank.device(), global_indices_.size()),
        sources_(frame.rank.device(), global_indices_.size()),
        local_values_(frame.rank.device(), frame.shape.elements(capacity.local + 1)),
        graph_(record(frame.rank.stream())) {
    graph_.launch(frame.rank.stream());  // the first launch is slow: it uploads the nodes to the GPU
    frame.rank.synchronize(frame.rank.stream());
    graph_bytes_ -= std::min(graph_bytes_, free_memory());
  }

  SparseCapacity capacity() const { return capacity_; }       ///< as given
  std::size_t graph_nodes() const { return graph_.nodes(); }  ///< kernels in the graph
  double recording_ms() const { return recording_ms_; }       ///< to record and instantiate it, once
  std::size_t graph_bytes() const { return graph_bytes_; }    ///< that it takes of the GPU's memory
  /// On the GPU, [F]: zeros after any calls.
  const T* dummy_row() const { return local_values_.data() + frame_.shape.elements(capacity_.local); }

  // ---- Before step 3: is there room? --------------------------------------------------------------------
  /// See HasLimits. The arguments are the same on all ranks. If each rank checked its own count instead, one
  /// would throw, and the others would wait in the all-reduce for ever.
  void require_room(std::int64_t max_local, std::int64_t global) const {
    const auto refuse = [](const std::string& what, std::int64_t capacity) {
      throw SparseInputError(what + ", and the graph was recorded for " + std::to_string(capacity));
    };
    if (max_local > capacity_.local) refuse(std::to_string(max_local) + " rows of one rank", capacity_.local);
    if (global > capacity_.global) refuse(std::to_string(global) + " different rows", capacity_.global);
  }

  /// Step 3. Writes every row of the result, so that nothing has to be zeroed first.
  void write(const SparseRows<Index, T>& local, const SparseRows<Index, T>& global, T* global_values,
             cudaStream_t stream) {
    frame_.clock.next(stream, "fill");
    refill(local, global, stream);
    frame_.clock.next(stream, "map");
    graph_.launch(stream);
    frame_.clock.next(stream, "gather");
    gather(local, global, global_values, stream);
  }

  /// The cost of the search. It depends on the capacities, not on the rows. One launch: the graph is one, of
  /// 2 capL + 1 kernels.
  static Cost cost(const sparse_nonzero::SparseCall& call, SparseCapacity capacity) {
    const auto number = static_cast<std::int64_t>(sizeof(std::int32_t));
    const auto index = static_cast<std::int64_t>(sizeof(Index)), value = static_cast<std::int64_t>(sizeof(T));
    const bool searches = call.global > 0;
    return {.launches = searches ? 1 : 0,
            .comparisons = searches ? capacity.local * capacity.global : 0,
            .memory = capacity.local * (index + number) +
                      capacity.global * (index + number + std::int64_t{sizeof(char)}) +
                      (capacity.local + 1) * call.features * value};
  }

 private:
  // ---- Once: the graph ----------------------------------------------------------------------------------
  Graph record(cudaStream_t stream) {
    // Padding everywhere: the two launches before the first call then find no row.
    CUDA_CHECK(cudaMemsetAsync(local_indices_.data(), kLocalPad, local_indices_.bytes(), stream));
    CUDA_CHECK(cudaMemsetAsync(global_indices_.data(), kGlobalPad, global_indices_.bytes(), stream));
    sparse_nonzero::write_numbers<<<blocks_for(capacity_.local), kBlockThreads, 0, stream>>>(steps_.data(),
                                                                                             capacity_.local);
    CUDA_CHECK(cudaGetLastError());
    // [task dummy: which values has a row that this rank does not have?]
    CUDA_CHECK(cudaMemsetAsync(local_values_.data() + frame_.shape.elements(capacity_.local), 0,
                               frame_.shape.elements(1) * sizeof(T), stream));
    // [/task]
    search(1, stream);  // loads the kernels, which must not happen in a capture
    frame_.rank.synchronize(stream);
    graph_bytes_ = free_memory();
    const HostTimer timer;
    Graph graph = Graph::capture(stream, [&] { search(capacity_.local, stream); });
    recording_ms_ = timer.milliseconds();
    return graph;
  }

  /// sources_[g] = j where the g-th global row is the j-th local one, for the first `rounds` local rows; the
  /// dummy row's number everywhere else. Only kernels, the same for all lists: so it can be recorded.
  void search(std::int64_t rounds, cudaStream_t stream) {
    reset_sources<<<blocks_for(capacity_.global), kBlockThreads, 0, stream>>>(sources_.data(),
                                                                              capacity_.global, dummy());
    CUDA_CHECK(cudaGetLastError());
    // [task record: over which lists does version 2's loop run, if it is recorded for all calls to come?]
    const sparse_where::WhereLoop<Index> loop = {.local = local_indices_.data(),
                                                 .local_count = rounds,
                                                 .global = global_indices_.data(),
                                                 .global_count = capacity_.global,
                                                 .steps = steps_.data(),
                                                 .flags = flags_.data(),
                                                 .sources = sources_.data()};
    sparse_where::enqueue_where_loop(loop, stream);
    // [/task]
  }

  // ---- Each call, first: the graph's input --------------------------------------------------------------
  void refill(const SparseRows<Index, T>& local, const SparseRows<Index, T>& global, cudaStream_t stream) {
    refill(local_indices_, local.indices, local.count, kLocalPad, stream);
    refill(global_indices_, global.indices, global.count, kGlobalPad, stream);
    // Values need no padding: nothing refers to a padding row.
    copy(local_values_.data(), local.values, frame_.shape.elements(local.count), stream);
  }

  static void refill(const DeviceBuffer<Index>& list, const Index* indices, std::int64_t count, int pad,
                     cudaStream_t stream) {
    copy(list.data(), indices, static_cast<std::size_t>(count), stream);
    // [task tail: what stands behind the list, if the last call's was longer?]
    const std::size_t rest = list.size() - static_cast<std::size_t>(count);
    if (rest > 0) CUDA_CHECK(cudaMemsetAsync(list.data() + count, pad, rest * sizeof(Index), stream));
    // [/task]
  }

  template <typename U>
  static void copy(U* to, const U* from, std::size_t count, cudaStream_t stream) {
    if (count > 0) CUDA_CHECK(cudaMemcpyAsync(to, from, count * sizeof(U), cudaMemcpyDeviceToDevice, stream));
  }

  // ---- Each call, last: the rows ------------------------------------------------------------------------
  // Not in the graph, which would have to write capG rows: here it writes only the existing ones.
  void gather(const SparseRows<Index, T>& local, const SparseRows<Index, T>& global, T* global_values,
              cudaStream_t stream) {
    gather_rows<<<blocks_for_rows(global.count), kBlockThreads, 0, stream>>>(
        local_values_.data(), sources_.data(), global.count, frame_.shape.features, global_values);
    CUDA_CHECK(cudaGetLastError());
    count_lost<<<blocks_for(capacity_.global), kBlockThreads, 0, stream>>>(
        local, global, sources_.data(), capacity_.global, dummy(), frame_.lost);
    CUDA_CHECK(cudaGetLastError());
  }

  std::int32_t dummy() const { return static_cast<std::int32_t>(capacity_.local); }

  static std::size_t free_memory() {
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
  }

  sparse_nonzero::SparseFrame frame_;
  SparseCapacity capacity_;
  DeviceBuffer<Index> local_indices_, global_indices_;  // [capL], [capG], pads included
  DeviceBuffer<std::int32_t> steps_;                    // [capL]: 0, 1, 2, ...
  DeviceBuffer<char> flags_;                            // [capG]
  DeviceBuffer<std::int32_t> sources_;                  // [capG]: local rows, or the dummy
  DeviceBuffer<T> local_values_;                        // [capL + 1, F]; the dummy row is the last
  double recording_ms_ = 0;
  std::size_t graph_bytes_ = 0;
  Graph graph_;
};

/// Version 3.
template <SparseIndex Index, Floating T>
using GraphAllReduce = sparse_nonzero::SparseAllReduce<Index, T, GraphWriter<Index, T>>;

}  // namespace overlap::sparse_graph
