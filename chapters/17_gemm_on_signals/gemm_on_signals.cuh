// Chapter 17: C = A B, where rank r has rows of A and columns of B, by copy engines and one kernel. Copy
// engines push every shard of A to all other ranks, each followed by a signal; the kernel computes all tiles
// of the rank's columns of C, each as soon as its rows of A have arrived:
//
//   transfers of rank d:  push A_d to d-1, raise | push A_d to d-2, raise | ...
//   kernel of rank d:     tiles of A_d | await A_(d+1), its tiles | await A_(d+2), its tiles | ...
//
// Source: "Overlapping AllGather GEMM" (Triton-distributed), within one node; the page beside this file gives
// the differences, and why.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "17_gemm_on_signals/gemm_kernel.cuh"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::gemm_on_signals {

/// C = A B in T with sums in f32. Rank r has A_r[m_r, k] and B_r[k, n_r], or B_r[n_r, k] with Major::kK, and
/// gets C_r[m, n_r], row-major, with m_r and n_r by balanced_share(), which may be 0. `Shape` is the tile.
template <SixteenBit T, Major B = Major::kMN, typename Shape = tensor_core_gemm::Tile<128, 256, 4>>
class GemmOnSignals {
 public:
  /// The same with another tile.
  template <typename Other>
  using WithTile = GemmOnSignals<T, B, Other>;

  /// Collective. Allocates all memory of run(), and makes each of its copies once. A shard is pushed in up to
  /// `pieces` pieces of its columns. Throws as PeerBuffer, Signals, require_sizes(), require_resident(),
  /// arrival_order() and Pieces::of() do, and Skip unless the GPU has compute capability 9.0.
  GemmOnSignals(Rank& rank, MatmulShape whole, int pieces = 1)
      : rank_(rank),
        ring_(rank),
        share_(tensor_core_gemm::share_of(whole, rank.size(), rank.id())),
        shards_(shards_of(whole, rank.size())),
        pieces_(pieces_of(whole, pieces)),
        gathered_(rank, 1, slot_elements(whole, rank.size())),
        arrived_(rank, rank.size() * pieces_.count),
        ready_(rank.device(), cudaEventDisableTiming),
        done_(rank.device(), cudaEventDisableTiming) {
    tensor_core_gemm::require_sizes(share_);
    const Tiling tiling = tensor_core_gemm::tiling_of<Shape>(share_);
    order_ = arrival_order(shards_, tiling, Shape::kM, rank.id());
    prepare_kernel(tiling);
    warm_up();
  }

  /// Enqueues one call on `stream`; until `stream` has passed it, do not write a and b, nor access c. All
  /// ranks make the same calls in the same order, without waits between them, on streams that are ordered.
  /// The pointers are aligned to 16 bytes.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    arrived_.begin_call();
    // Enqueue the transfers first: a kernel enqueued before them may wait for ever.
    push(a, stream);
    copy_edges(a, stream);
    multiply(a, b, c, stream);
    close(stream);
  }

  /// The transfers alone, without the GEMM. `stream` passes the call when all shards have arrived.
  void gather(const T* a, cudaStream_t stream) {
    arrived_.begin_call();
    push(a, stream);
    for (int step = 1; step < rank_.size(); ++step) {
      const int owner = ring_.shard(step);
      arrived_.await(last_signal(owner), stream);
    }
    join(stream);
  }

  /// Cost card of one call of `rank`. A message is a piece of its shard with its signal, or the signal alone
  /// if the shard has no rows.
  static Cost cost(MatmulShape whole, int ranks, int rank, int pieces = 1) {
    const std::int64_t row = whole.k * std::int64_t{sizeof(T)};
    const Shards shards = shards_of(whole, ranks);
    const std::int64_t own = shards.end(rank) - shards.begin(rank);
    return {.messages = (ranks - 1) * (own > 0 ? pieces_of(whole, pieces).count : 1),
            .bytes_out = (ranks - 1) * own * row,
            .bytes_in = (whole.m - own) * row,
            .launches = whole.m > 0 && whole.k > 0 && !balanced_share(whole.n, ranks, rank).empty() ? 1 : 0,
            .memory = Slots<T>::bytes(1, slot_elements(whole, ranks))};
  }
  /// Bytes that a call copies within the rank's GPU: the edges of its shard.
  static std::int64_t bytes_of_edges(MatmulShape whole, int ranks, int rank) {
    if (balanced_share(whole.n, ranks, rank).empty()) return 0;
    const Edges edges = edges_of(shards_of(whole, ranks), rank, Shape::kM);
    return (edges.head.size() + edges.tail.size()) * whole.k * std::int64_t{sizeof(T)};
  }

 private:
  using Memory = SharedMemory<T, Shape, TmaStore>;
  static constexpr int kThreads = (Shape::kGroups + 1) * wgmma::kThreads;
  static constexpr auto kKernel = multiply_on_signals<T, Shape, B>;

  // ---- Push the own shard to all others, the nearest left neighbour first ---------------------------------
  // Receiver d needs the shards in the order d + 1, d + 2, ..., so in step i rank d pushes to d - i. If all
  // ranks are in the same step, each pushes to one rank and receives from one.
  void push(const T* a, cudaStream_t stream) {
    if (rank_.size() == 1) return;
    CUDA_CHECK(cudaEventRecord(ready_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(transfer(), ready_));
    for (int step = 1; step < rank_.size(); ++step) {
      const int receiver = ring_.at(-step);
      const TimelineScope name("step ", step, ": push shard ", rank_.id(), " to rank ", receiver);
      push_to(receiver, a);
    }
    CUDA_CHECK(cudaEventRecord(done_, transfer()));
  }

  /// Pushes the shard to its place in the receiver's gathered A, piece by piece.
  void push_to(int receiver, const T* a) {
    const Range rows{shards_.begin(rank_.id()), shards_.end(rank_.id())};
    // [task push_to: which columns has each piece, and in which order do a piece and its signal go?]
    for (int piece = 0; piece < pieces_.count && !rows.empty(); ++piece) {
      const std::int64_t begin = std::int64_t{pieces_.begin(piece)} * tensor_core_gemm::kSpan;
      const std::int64_t end = std::int64_t{pieces_.begin(piece + 1)} * tensor_core_gemm::kSpan;
      copy(receiver, rows, {begin, std::min(end, share_.k)}, a, transfer());
      arrived_.raise(receiver, pieces_.signal(rank_.id(), piece), transfer());
    }
    // [/task]
    // A shard without rows needs a signal, too: it also says that this rank has ended its last call
    // (close()).
    if (rows.empty()) arrived_.raise(receiver, last_signal(rank_.id()), transfer());
  }

  // ---- The own shard's edges ------------------------------------------------------------------------------
  // The kernel reads the own shard in place. But a tile is loaded by one tensor map: if it also has rows of
  // other ranks, it reads the gathered A, so its own rows are copied there. The copy precedes the kernel, on
  // the caller's stream: a copy within a GPU needs multiprocessors, and the waiting kernel occupies them all.
  void copy_edges(const T* a, cudaStream_t stream) {
    // [task copy_edges: which own rows does the kernel not read in place, and where does it look for them?]
    // [blank] (void)a, (void)stream;
    if (share_.n == 0) return;
    const Edges edges = edges_of(shards_, rank_.id(), Shape::kM);
    const TimelineScope name("copy edges of shard ", rank_.id());
    copy(rank_.id(), edges.head, {0, share_.k}, a, stream);
    copy(rank_.id(), edges.tail, {0, share_.k}, a, stream);
    // [/task]
  }

  // ---- One kernel for all of the rank's columns -----------------------------------------------------------
  void multiply(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (blocks_ == 0) return;
    if (share_.k == 0) {  // empty sums
      CUDA_CHECK(cudaMemsetAsync(c, 0, share_.m * share_.n * sizeof(T), stream));
      return;
    }
    const TimelineScope name("multiply shards as they come");
    const int own_rows = shards_.end(rank_.id()) - shards_.begin(rank_.id());
    using tensor_core_gemm::tensor_map;
    const tensor_core_gemm::OperandMaps<T, Shape, B> maps(rank_.size() == 1 ? a : gathered(rank_.id()), b,
                                                          share_);
    // A map cannot have 0 rows; if the shard is empty, no tile uses the map.
    const CUtensorMap own = own_rows > 0 ? tensor_map(a, own_rows, share_.k, Shape::kM) : maps.a;
    const CUtensorMap to_c = tensor_map(c, share_.m, share_.n, tensor_core_gemm::kGroupRows);
    const Arrivals arrivals{shards_,          rank_.id(),         arrived_.word(rank_.id(), 0),
                            arrived_.epoch(), rank_.abort_flag(), pieces_};
    multiply_on_signals<T, Shape, B>
        <<<blocks_, kThreads, sizeof(Memory), stream>>>(own, maps.a, maps.b, to_c, order_, arrivals);
    CUDA_CHECK(cudaGetLastError());
  }

  // ---- End of a call, so that the next one needs no barrier -----------------------------------------------
  // Calls alternate between two halves of the gathered A. Rank d writes the same half of rank r in calls e
  // and e + 2, so r must have ended call e before. It has: before call e + 2, d ended call e + 1, in which it
  // saw r's signal, and r raised that after its call e. So each call must see a signal of every rank, also of
  // ranks for which the kernel did not wait.
  void close(cudaStream_t stream) {
    for (int step = 1; step < rank_.size(); ++step) {
      const int owner = ring_.shard(step);
      const bool no_rows = shards_.begin(owner) == shards_.end(owner);
      if (blocks_ == 0 || no_rows) arrived_.await(last_signal(owner), stream);
    }
    join(stream);
  }

  /// The caller's stream waits for the transfers, which read `a`.
  void join(cudaStream_t stream) {
    if (rank_.size() > 1) CUDA_CHECK(cudaStreamWaitEvent(stream, done_));
  }

  /// Copies rows and columns of the own shard to their place in the receiver's gathered A.
  void copy(int receiver, Range rows, Range columns, const T* a, cudaStream_t stream) {
    if (rows.empty() || columns.empty()) return;
    const T* from = a + (rows.begin - shards_.begin(rank_.id())) * share_.k + columns.begin;
    T* to = gathered(receiver) + rows.begin * share_.k + columns.begin;
    const std::size_t pitch = share_.k * sizeof(T);
    CUDA_CHECK(cudaMemcpy2DAsync(to, pitch, from, pitch, columns.size() * sizeof(T), rows.size(),
                                 cudaMemcpyDefault, stream));
  }

  /// As many blocks as are resident at the same time.
  void prepare_kernel(Tiling tiling) {
    // Ranks that share a GPU leave one multiprocessor to copies within it.
    const int room = tensor_core_gemm::multiprocessors_to_wait_on(rank_, rank_.shares_gpu() ? 1 : 0);
    if (tiling.tiles() == 0) return;
    blocks_ = std::min(tiling.tiles(), room);
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)));
    require_resident(rank_, kKernel, kThreads, sizeof(Memory), blocks_);  // loads it, too
  }

  /// Makes each copy once, because the first one may load a kernel, which would deadlock behind a waiting
  /// kernel. Copies between the halves of the gathered A.
  void warm_up() {
    const int begin = shards_.begin(rank_.id()), end = shards_.end(rank_.id());
    if (rank_.size() == 1 || begin == end) return rank_.barrier();
    const T* from = gathered_.on(rank_.id(), 0, 1) + begin * share_.k;
    CUDA_CHECK(cudaMemsetAsync(gathered_.on(rank_.id(), 0, 1) + begin * share_.k, 0,
                               (end - begin) * share_.k * sizeof(T), transfer()));
    for (int step = 0; step < rank_.size(); ++step)
      copy(ring_.at(-step), {begin, end}, {0, share_.k}, from, transfer());
    rank_.synchronize(transfer());
    rank_.barrier();
  }

  static Shards shards_of(MatmulShape whole, int ranks) { return {static_cast<int>(whole.m), ranks}; }
  static Pieces pieces_of(MatmulShape whole, int wanted) {
    return Pieces::of(tensor_core_gemm::tiling_of<Shape>(whole).along_k, wanted);
  }
  /// The signal of a rank's last piece.
  int last_signal(int owner) const { return pieces_.signal(owner, pieces_.count - 1); }
  /// All of A on every rank; a single rank needs no slot.
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    return ranks == 1 ? 0 : whole.m * whole.k;
  }
  /// This call's half of the gathered A on that rank.
  T* gathered(int rank) const { return gathered_.on(rank, 0, arrived_.epoch()); }
  cudaStream_t transfer() { return rank_.transfer_stream(); }  // of high priority

  Rank& rank_;
  Ring ring_;
  MatmulShape share_;  // all rows, own columns
  Shards shards_;
  Pieces pieces_;
  Slots<T> gathered_;   // A[m, k], twice
  Signals arrived_;     // [owner][piece]
  Event ready_, done_;  // order the transfer stream after the caller's, and the reverse
  ArrivalOrder order_{};
  int blocks_ = 0;
};

}  // namespace overlap::gemm_on_signals
