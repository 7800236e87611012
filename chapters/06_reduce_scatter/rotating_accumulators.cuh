// Chapter 06 (b): C = X W by rotating accumulators. There is one accumulator for each rank's rows. It passes
// through all ranks, each adds its partial product, and it ends on its owner:
//
//   step         0        1        2        3      P = 4: whose accumulator rank d has in each step
//   rank 0    chunk 3  chunk 2  chunk 1  chunk 0
//   rank 1    chunk 0  chunk 3  chunk 2  chunk 1
//   rank 2    chunk 1  chunk 0  chunk 3  chunk 2
//   rank 3    chunk 2  chunk 1  chunk 0  chunk 3
//
// Chunk 0 begins on rank 1 and ends on rank 0. While an accumulator is in transfer, its next rank computes
// the partial product that it will add.
//
// Source: the article on async tensor parallelism, "Decomposing matmul reduce-scatters", after Wang et al.,
// "Overlap Communication with Dependent Computation via Decomposition" (ASPLOS 2023). They begin with
// accumulators of zeros, which are passed P times; here the first partial product *is* the accumulator: P - 1
// times.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "06_reduce_scatter/chunk_products.cuh"
#include "06_reduce_scatter/vec16.cuh"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"

namespace overlap::reduce_scatter {

/// sum = received + partial, rounded to Sum once. The first `vectors` vectors are added as vectors, the rest
/// of the `elements` one by one. `sum` may be on another GPU, or be `partial`.
template <Floating Accumulator, Floating Sum>
__global__ void add(const Accumulator* received, const Accumulator* partial, Sum* sum, std::int64_t elements,
                    std::int64_t vectors) {
  constexpr int kWidth = kVec16Width<Sum>;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = first; i < vectors; i += threads) {
    const auto one = reinterpret_cast<const Vec16<Accumulator, kWidth>*>(received)[i];
    const auto other = reinterpret_cast<const Vec16<Accumulator, kWidth>*>(partial)[i];
    Vec16<Sum, kWidth> total;
    for (int j = 0; j < kWidth; ++j) {
      total.values[j] =
          static_cast<Sum>(static_cast<float>(one.values[j]) + static_cast<float>(other.values[j]));
    }
    reinterpret_cast<Vec16<Sum, kWidth>*>(sum)[i] = total;
  }
  for (std::int64_t i = vectors * kWidth + first; i < elements; i += threads) {
    sum[i] = static_cast<Sum>(static_cast<float>(received[i]) + static_cast<float>(partial[i]));
  }
}

/// The initial value of accumulators.
enum class Start {
  kFirstPartial,  ///< the first rank's partial product is the accumulator: P - 1 passes
  kZeros,         ///< as in the article: zeros, which are passed as well: P passes
};

/// How an accumulator is passed to the next rank. A kernel that stores over the link occupies multiprocessors
/// for as long as the transfer takes, but it saves one copy in every step.
enum class Pass {
  kStore,  ///< the kernel that adds stores directly into the next rank's slot
  kCopy,   ///< a kernel adds, then a copy engine copies
};

/// Rows of C = X W: rank r has X[m, k_r] and W[k_r, n], and gets its rows of C[m, n]. Accumulators and
/// partial products are of type Accumulator: T, with a rounding in every step, or float, with twice the bytes
/// of 16-bit elements and one rounding to T at the end.
template <Floating T, Floating Accumulator = T>
class RotatingAccumulators {
 public:
  /// Allocates everything and runs each product and kernel once. `pass`: usual_pass(), unless it is given.
  /// Collective. Throws CudaError, CublasError; Skip if two GPUs have no access to each other's memory.
  RotatingAccumulators(Rank& rank, MatmulShape whole, Start start = Start::kFirstPartial,
                       std::optional<Pass> pass = {})
      : rank_(rank),
        start_(start),
        pass_(pass.value_or(usual_pass(rank.size()))),
        products_(rank, whole),
        chunks_(products_.chunks()),
        max_blocks_(8 * multiprocessors(rank.device())),
        slots_(rank, rank.size(), chunks_.max_elements()),
        partials_(rank.device(), rank.size() * slots_.pitch()),
        zeros_(rank.device(), start == Start::kZeros ? slots_.pitch() : 0),
        arrived_(rank, rank.size()),
        finished_(rank.device(), cudaEventDisableTiming) {
    const cudaStream_t stream = rank.stream();
    products_.warm_up();
    add<<<1, 1, 0, stream>>>(received(0), partials_.data(), partials_.data(), 0, 0);
    CUDA_CHECK(cudaGetLastError());
    add<<<1, 1, 0, stream>>>(received(0), partials_.data(), static_cast<T*>(nullptr), 0, 0);
    CUDA_CHECK(cudaGetLastError());
    if (zeros_.size() > 0) CUDA_CHECK(cudaMemsetAsync(zeros_.data(), 0, zeros_.bytes(), stream));
    rank.synchronize(stream);
    rank.barrier();  // ranks may share a GPU: no stream waits for a signal before all ranks have warmed up
  }

  /// Enqueues one call: x[m, k_r], w[k_r, n], c[m_r, n], all row-major and dense, on this rank's GPU. Every
  /// rank makes the same calls in the same order; they may follow each other without a barrier.
  void run(const T* x, const T* w, T* c, cudaStream_t stream) {
    if (rank_.size() == 1) {
      matmul_row_major(rank_.cublas(), stream, products_.whole(), x, w, c);
      return;
    }
    products_.begin(stream);
    arrived_.begin_call();
    if (start_ == Start::kZeros) pass_zeros();
    const int last = rank_.size() - 1;
    for (int step = 0; step <= last; ++step) {
      products_.multiply(step, chunk(step), x, w, partial(step));
      products_.await(step, transfer());
      if (step == 0 && start_ == Start::kFirstPartial) {
        copy_to_next(0, partial(0));
        continue;
      }
      arrived_.await(step, transfer());
      if (step < last) {
        add_and_pass(step);
      } else {
        add_up(received(step), partial(step), c, chunk(step), max_blocks_);
      }
    }
    CUDA_CHECK(cudaEventRecord(finished_, transfer()));  // it has waited for all products
    CUDA_CHECK(cudaStreamWaitEvent(stream, finished_));
  }

  /// What `rank` of `ranks` moves and keeps in one call. It passes on each accumulator but its own, which
  /// ends here; with initial zeros it passes that one, too. The page's cost card and the tests both come from
  /// here.
  static Cost cost(MatmulShape whole, int ranks, int rank, Start start = Start::kFirstPartial) {
    const Chunks chunks{whole.m, whole.n, ranks};
    const bool zeros = start == Start::kZeros;
    const std::int64_t all = whole.m * whole.n, own = chunks.elements(rank), element = sizeof(Accumulator);
    const std::int64_t first = chunks.elements(Ring(rank, ranks).at(-1));
    Cost cost;
    cost.products = chunks.with_rows();
    cost.memory = Slots<Accumulator>::bytes(ranks, chunks.max_elements()) +
                  (ranks + (zeros ? 1 : 0)) * Slots<Accumulator>::pitch(chunks.max_elements()) * element;
    if (ranks == 1) return cost;
    cost.messages = zeros ? ranks : ranks - 1;
    cost.bytes_out = (zeros ? all : all - own) * element;
    cost.bytes_in = (zeros ? all : all - first) * element;
    cost.launches = chunks.with_rows() - (!zeros && first > 0 ? 1 : 0);  // each adds where there are rows
    return cost;
  }
  /// The faster choice of an early version, timed on 2, 4 and 8 H200.
  static Pass usual_pass(int ranks) { return ranks < 4 ? Pass::kCopy : Pass::kStore; }
  /// The sent bytes that a copy engine copies; a kernel stores the rest. The accumulator that this rank
  /// begins is always copied.
  static std::int64_t bytes_by_copy(MatmulShape whole, int ranks, int rank, Start start, Pass pass) {
    if (ranks == 1 || pass == Pass::kCopy) return cost(whole, ranks, rank, start).bytes_out;
    const int begun = start == Start::kZeros ? rank : Ring(rank, ranks).at(-1);
    return Chunks{whole.m, whole.n, ranks}.elements(begun) * std::int64_t{sizeof(Accumulator)};
  }

 private:
  /// Blocks of a kernel that stores over the link: about as many as saturate the link. More would only take
  /// multiprocessors from the GEMMs.
  static constexpr int kStoringBlocks = 64;

  /// Whose accumulator this rank has in a step: first the previous rank's, last its own.
  int chunk(int step) const {
    // [task chunk: whose is it, if accumulators go to the next rank and end where they belong?]
    // [blank] return (rank_.id() + step) % rank_.size();
    return (rank_.id() + rank_.size() - 1 - step) % rank_.size();
    // [/task]
  }
  Accumulator* partial(int step) const { return partials_.data() + step * slots_.pitch(); }
  /// The slot in which the accumulator of a step arrives on a rank. Calls alternate between two sets of
  /// slots: the previous rank may be one call ahead of this one, which still reads the previous set. It is
  /// never two calls ahead: to complete a call, it needs the accumulator that begins on this rank in that
  /// call.
  Accumulator* slot(int at, int step) const { return slots_.on(at, step, arrived_.epoch()); }
  Accumulator* received(int step) const { return slot(rank_.id(), step); }
  cudaStream_t transfer() { return rank_.transfer_stream(); }

  // ---- Before step 0, as in the article: an accumulator of zeros ---------------------------------------
  void pass_zeros() {
    products_.await_begin(transfer());
    copy_to_next(-1, zeros_.data());
  }

  // ---- Steps 0 to P - 2: the accumulator goes to the next rank -----------------------------------------
  void add_and_pass(int step) {
    // [task add_and_pass: what is added to what, and where does the sum go?]
    // [blank] copy_to_next(step, partial(step));
    if (pass_ == Pass::kCopy) {
      add_up(received(step), partial(step), partial(step), chunk(step), max_blocks_);
      copy_to_next(step, partial(step));
    } else {
      add_up(received(step), partial(step), slot(rank_.next(), step + 1), chunk(step), kStoringBlocks);
      arrived_.raise(rank_.next(), step + 1, transfer());
    }
    // [/task]
  }
  void copy_to_next(int step, const Accumulator* accumulator) {
    // The zeros of "step -1" are those of the rank's own chunk: it is what chunk(-1) is.
    const TimelineScope name("step ", step, ": pass chunk ", chunk(step));
    const std::size_t bytes = chunks_.elements(chunk(step)) * sizeof(Accumulator);
    if (bytes > 0) {
      CUDA_CHECK(cudaMemcpyAsync(slot(rank_.next(), step + 1), accumulator, bytes, cudaMemcpyDeviceToDevice,
                                 transfer()));
    }
    arrived_.raise(rank_.next(), step + 1, transfer());
  }

  // ---- Steps 1 to P - 1: what has arrived + the partial product ----------------------------------------
  template <typename Sum>
  void add_up(const Accumulator* one, const Accumulator* other, Sum* sum, int chunk, int max_blocks) {
    const std::int64_t elements = chunks_.elements(chunk);
    if (elements == 0) return;
    const TimelineScope name("add chunk ", chunk);
    const std::int64_t vectors = vectors_at(sum, elements);
    add<<<add_blocks(vectors, elements, max_blocks), kAddThreads, 0, transfer()>>>(one, other, sum, elements,
                                                                                   vectors);
    CUDA_CHECK(cudaGetLastError());
  }

  Rank& rank_;
  Start start_;
  Pass pass_;
  ChunkProducts<T, Accumulator> products_;
  Chunks chunks_;
  int max_blocks_;                      // as many threads as the GPU can hold
  Slots<Accumulator> slots_;            // by step
  DeviceBuffer<Accumulator> partials_;  // by step
  DeviceBuffer<Accumulator> zeros_;
  Signals arrived_;  // by step
  Event finished_;
};

}  // namespace overlap::reduce_scatter
