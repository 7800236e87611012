// Chapter 20: C = A B on several nodes, where rank r has rows of A and columns of B. Chapter 17's kernel
// waits for shards that arrive in two phases. Between nodes, a rail connects the ranks with the same number
// in all nodes: NCCL sends every shard along it, once to each node. Inside a node, copy engines push the own
// shard to all others, and then each shard received along the rail:
//
//   rail of rank d:      A_d to the next node on the right, A_(d-L) from the left | A_d to the second | ...
//   transfers of rank d: push A_d to d-1, d-2, ... in the node | await A_(d-L), push it | ...
//   kernel of rank d:    tiles of A_d | of its node, by arrival | of the node on the left | ...
//
// Source: "Overlapping AllGather GEMM" (Triton-distributed), between nodes; the page beside this file gives
// the differences, and why.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cstdint>

#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "20_two_nodes/node_order.cuh"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/slots.hpp"

namespace overlap::two_nodes {

using gemm_on_signals::Arrivals, gemm_on_signals::Edges, gemm_on_signals::multiply_on_signals;
using tensor_core_gemm::Major;

/// Multiprocessors that the GEMM sets aside for NCCL: enough blocks for a network card, on an H100 four of
/// 132.
constexpr int rail_blocks(int multiprocessors) { return std::max(1, multiprocessors / 32); }

/// C = A B in T with sums in f32. Rank r has A_r[m_r, k] and B_r[k, n_r], or B_r[n_r, k] with Major::kK, and
/// gets C_r[m, n_r], row-major, with m_r and n_r by balanced_share(), which may be 0. Nodes as in Nodes.
/// `Shape` is the tile.
template <SixteenBit T, Major B = Major::kMN, typename Shape = tensor_core_gemm::Tile<128, 256, 4>>
class TwoLevelGemm {
 public:
  /// Collective. Allocates all memory of run(), makes each of its copies once and opens the rails. Throws as
  /// PeerBuffer, Signals, Rank::rail(), require_sizes(), require_resident() and require_nodes() do, Skip
  /// unless the GPU has compute capability 9.0, UsageError for more than kMaxRanks ranks.
  TwoLevelGemm(Rank& rank, MatmulShape whole, int gpus_per_node)
      : rank_(rank),
        nodes_(nodes_of(rank, gpus_per_node)),
        share_(tensor_core_gemm::share_of(whole, rank.size(), rank.id())),
        shards_(shards_of(whole, rank.size())),
        multiprocessors_(tensor_core_gemm::multiprocessors_with_wgmma(rank)),
        rail_(nodes_.count() > 1 ? rank.rail(gpus_per_node, rail_blocks(multiprocessors_)) : nullptr),
        gathered_(rank, 1, slot_elements(whole, rank.size()), Reach::kProcess),
        arrived_(rank, rank.size(), Reach::kProcess),
        ready_(rank.device(), cudaEventDisableTiming),
        done_(rank.device(), cudaEventDisableTiming) {
    tensor_core_gemm::require_sizes(share_);
    const Tiling tiling = tensor_core_gemm::tiling_of<Shape>(share_);
    order_ = node_order(nodes_, shards_, tiling, Shape::kM);
    prepare(tiling);
    warm_up();
  }

  /// Enqueues one call on `stream`; until `stream` has passed it, do not write a and b, nor access c. All
  /// ranks make the same calls in the same order, without waits between them, on streams that are ordered.
  /// The pointers are aligned to 16 bytes.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    arrived_.begin_call();
    // Enqueue the transfers first: a kernel enqueued before them may wait for ever.
    gather_shards(a, stream);
    copy_edges(a, stream);
    multiply(a, b, c, stream);
    close(stream);
  }

  /// The transfers alone, without the GEMM. `stream` passes the call when all shards have arrived.
  void gather(const T* a, cudaStream_t stream) {
    arrived_.begin_call();
    gather_shards(a, stream);
    for (int arrival = 1; arrival < rank_.size(); ++arrival) arrived_.await(nodes_.owner(arrival), stream);
    join(stream);
  }

  /// Cost card of the rail of `rank` in one call. Shards without rows are not sent.
  static Cost rail_cost(MatmulShape whole, int ranks, int rank, int per_node) {
    const Nodes nodes = nodes_of(rank, ranks, per_node);
    const std::int64_t own = bytes_of(whole, ranks, rank);
    Cost cost{.messages = own > 0 ? nodes.count() - 1 : 0, .bytes_out = (nodes.count() - 1) * own};
    for (int step = 1; step < nodes.count(); ++step)
      cost.bytes_in += bytes_of(whole, ranks, nodes.at(-step, 0));
    return cost;
  }
  /// Cost card inside the node. A message is a shard with its signal, or the signal alone if it has no rows.
  static Cost node_cost(MatmulShape whole, int ranks, int rank, int per_node) {
    const Nodes nodes = nodes_of(rank, ranks, per_node);
    Cost cost{.messages = std::int64_t{per_node - 1} * nodes.count()};
    for (int owner = 0; owner < ranks; ++owner) {
      const std::int64_t bytes = bytes_of(whole, ranks, owner);
      const bool own_rail = owner % per_node == nodes.local();
      (own_rail ? cost.bytes_out : cost.bytes_in) += own_rail ? (per_node - 1) * bytes : bytes;
    }
    return cost;
  }
  /// Cost card of a call: both, the launches and the memory.
  static Cost cost(MatmulShape whole, int ranks, int rank, int per_node) {
    const Cost rail = rail_cost(whole, ranks, rank, per_node), node = node_cost(whole, ranks, rank, per_node);
    return {.messages = rail.messages + node.messages,
            .bytes_out = rail.bytes_out + node.bytes_out,
            .bytes_in = rail.bytes_in + node.bytes_in,
            .launches = whole.m > 0 && whole.k > 0 && !balanced_share(whole.n, ranks, rank).empty() ? 1 : 0,
            .memory = Slots<T>::bytes(1, slot_elements(whole, ranks))};
  }

 private:
  using Memory = tensor_core_gemm::SharedMemory<T, Shape, tensor_core_gemm::TmaStore>;
  static constexpr int kThreads = (Shape::kGroups + 1) * wgmma::kThreads;
  static constexpr auto kKernel = multiply_on_signals<T, Shape, B, NodeOrder>;

  void gather_shards(const T* a, cudaStream_t stream) {
    if (rank_.size() == 1) return;
    // Both streams wait for the caller's stream: for the producer of A, and for earlier calls.
    CUDA_CHECK(cudaEventRecord(ready_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(rail_stream(), ready_));
    CUDA_CHECK(cudaStreamWaitEvent(node_stream(), ready_));
    send_along_the_rail(a);
    push(rank_.id(), a);
    forward();
    CUDA_CHECK(cudaEventRecord(done_, node_stream()));
  }

  // ---- Phase 1, between nodes: the own shard along the rail -----------------------------------------------
  // Step i sends to the node i places to the right, and receives from the node i places to the left. The
  // steps are sequential, so the first shard has the whole rail, and is forwarded while the next one arrives.
  // Send and receive of a step are one group, so neither waits for the other.
  void send_along_the_rail(const T* a) {
    for (int step = 1; step < nodes_.count(); ++step) {
      const int receiver = nodes_.at(step, 0), sender = nodes_.at(-step, 0);
      const TimelineScope name("step ", step, ": shard ", rank_.id(), " to rank ", receiver, ", shard ",
                               sender, " comes");
      // [task rail: what goes to whom, and what comes from whom, by their nodes' numbers?]
      NCCL_CHECK(ncclGroupStart());
      if (elements(rank_.id()) > 0)
        NCCL_CHECK(ncclSend(a, elements(rank_.id()), nccl_type<T>(), receiver / nodes_.per_node, rail_,
                            rail_stream()));
      if (elements(sender) > 0)
        NCCL_CHECK(ncclRecv(place_of(sender, rank_.id()), elements(sender), nccl_type<T>(),
                            sender / nodes_.per_node, rail_, rail_stream()));
      NCCL_CHECK(ncclGroupEnd());
      // [/task]
      arrived_.raise(rank_.id(), sender, rail_stream());  // for the kernel, and for the other stream
    }
  }

  // ---- Phase 2, inside the node: the own shard, then each shard received along the rail -------------------
  /// Pushes a shard to all others of the node, the nearest left neighbour first, as in chapter 17.
  void push(int owner, const T* shard) {
    for (int step = 1; step < nodes_.per_node; ++step) {
      const int receiver = nodes_.at(0, -step);
      const TimelineScope name("push shard ", owner, " to rank ", receiver);
      // [task push: in which order do the shard and its signal go, and to whom?]
      if (elements(owner) > 0)
        CUDA_CHECK(cudaMemcpyAsync(place_of(owner, receiver), shard, elements(owner) * sizeof(T),
                                   cudaMemcpyDefault, node_stream()));
      // A shard without rows needs a signal, too: it also says that this rank has ended its last call
      // (close()).
      arrived_.raise(receiver, owner, node_stream());
      // [/task]
    }
  }

  void forward() {
    for (int step = 1; step < nodes_.count(); ++step) {
      // [task forward: which shard has come in this step, and how does this stream know?]
      const int owner = nodes_.at(-step, 0);
      arrived_.await(owner, node_stream());
      push(owner, place_of(owner, rank_.id()));
      // [/task]
    }
  }

  // ---- The own shard's edges, the GEMM, the end: as in chapter 17 -----------------------------------------
  void copy_edges(const T* a, cudaStream_t stream) {
    if (share_.n == 0) return;
    const Edges edges = gemm_on_signals::edges_of(shards_, rank_.id(), Shape::kM);
    const TimelineScope name("copy edges of shard ", rank_.id());
    for (const Range rows : {edges.head, edges.tail}) {
      const std::int64_t first = rows.begin - shards_.begin(rank_.id());
      if (rows.empty()) continue;
      CUDA_CHECK(cudaMemcpyAsync(place_of(rank_.id(), rank_.id()) + first * share_.k, a + first * share_.k,
                                 rows.size() * share_.k * sizeof(T), cudaMemcpyDefault, stream));
    }
  }

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
    const Arrivals arrivals{shards_, rank_.id(), arrived_.word(rank_.id(), 0), arrived_.epoch(),
                            rank_.abort_flag()};
    multiply_on_signals<T, Shape, B, NodeOrder>
        <<<blocks_, kThreads, sizeof(Memory), stream>>>(own, maps.a, maps.b, to_c, order_, arrivals);
    CUDA_CHECK(cudaGetLastError());
  }

  // Calls alternate between two halves of the gathered A. A rank may push into a half again two calls later,
  // because in the call between it has seen a signal of each rank that it pushes to (chapter 17): those are
  // the ranks of its node, and each raises the signal of its own shard. A shard from the rail is received on
  // this rank's own stream, after its own earlier calls.
  void close(cudaStream_t stream) {
    for (int arrival = 1; arrival < rank_.size(); ++arrival) {
      const int owner = nodes_.owner(arrival);
      if (blocks_ == 0 || elements(owner) == 0) arrived_.await(owner, stream);
    }
    join(stream);
  }

  /// The caller's stream waits for the transfers, which read `a`. The node's stream has waited for a signal
  /// after each step of the rail, and so also for the step's send.
  void join(cudaStream_t stream) {
    if (rank_.size() > 1) CUDA_CHECK(cudaStreamWaitEvent(stream, done_));
  }

  // ---- Before the first call ------------------------------------------------------------------------------
  /// As many blocks as are resident at the same time beside NCCL's. A waiting block keeps its multiprocessor:
  /// if they occupied all, NCCL could never start the transfers that they wait for.
  void prepare(Tiling tiling) {
    const int copies = rank_.shares_gpu() ? 1 : 0;  // within the GPU that ranks share
    const int nccl = rail_ != nullptr ? rail_blocks(multiprocessors_) : 0;
    const int room = tensor_core_gemm::multiprocessors_to_wait_on(rank_, nccl + copies);
    if (tiling.tiles() == 0) return;
    blocks_ = std::min(tiling.tiles(), room);
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)));
    require_resident(rank_, kKernel, kThreads, sizeof(Memory), blocks_);  // loads it, too
  }

  /// A call without GEMM: makes each copy once, and NCCL connects the nodes. Both would deadlock behind a
  /// waiting kernel.
  void warm_up() {
    if (rank_.size() > 1 && share_.k > 0) {
      const DeviceBuffer<T> a(rank_.device(), static_cast<std::size_t>(elements(rank_.id())));
      CUDA_CHECK(cudaMemset(a.data(), 0, a.bytes()));
      CUDA_CHECK(cudaDeviceSynchronize());
      rank_.barrier();
      gather(a.data(), rank_.stream());
      rank_.synchronize(rank_.stream());
      rank_.barrier();  // before `a` is freed: cudaFree waits for the GPU, and so for ranks that share it
    }
    rank_.barrier();
  }

  /// A node must lie in one process, because its ranks access each other's memory.
  static Nodes nodes_of(const Rank& rank, int per_node) {
    require_nodes(rank.local_size(), per_node);
    return nodes_of(rank.id(), rank.size(), per_node);
  }
  static Nodes nodes_of(int rank, int ranks, int per_node) {
    require_nodes(ranks, per_node);
    return {rank, ranks, per_node};
  }
  static Shards shards_of(MatmulShape whole, int ranks) { return {static_cast<int>(whole.m), ranks}; }
  static std::int64_t bytes_of(MatmulShape whole, int ranks, int owner) {
    return balanced_share(whole.m, ranks, owner).size() * whole.k * std::int64_t{sizeof(T)};
  }
  /// All of A on every rank; a single rank needs no slot.
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    return ranks == 1 ? 0 : whole.m * whole.k;
  }
  /// Elements of that rank's shard.
  std::int64_t elements(int owner) const { return (shards_.end(owner) - shards_.begin(owner)) * share_.k; }
  /// Where the owner's shard lies in the gathered A of `rank`.
  T* place_of(int owner, int rank) const { return gathered(rank) + shards_.begin(owner) * share_.k; }
  /// This call's half of the gathered A on that rank.
  T* gathered(int rank) const { return gathered_.on(rank, 0, arrived_.epoch()); }
  // Both of high priority.
  cudaStream_t node_stream() { return rank_.transfer_stream(0); }
  cudaStream_t rail_stream() { return rank_.transfer_stream(1); }

  Rank& rank_;
  Nodes nodes_;
  MatmulShape share_;  // all rows, own columns
  Shards shards_;
  int multiprocessors_;  // of the GPU
  ncclComm_t rail_;      // null on one node
  Slots<T> gathered_;    // A[m, k], twice
  Signals arrived_;      // [owner]
  Event ready_, done_;   // order the two streams after the caller's, and the other way round
  NodeOrder order_{};
  int blocks_ = 0;
};

}  // namespace overlap::two_nodes
