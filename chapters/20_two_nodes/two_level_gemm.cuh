// Chapter 20: C = A B on several nodes, where rank r has rows of A and columns of B. Chapter 17's kernel
// waits for shards that come in two phases. Between nodes each rank has a rail, the way to the ranks with its
// number in other nodes: NCCL sends every shard along it, once to each node. Inside a node copy engines push
// the own shard to all others, and then what came along the rail:
//
//   rail of rank d:      A_d to the next node on the right, A_(d-L) from the left | A_d to the second | ...
//   transfers of rank d: push A_d to d-1, d-2, ... in the node | once A_(d-L) is here, push it, too | ...
//   kernel of rank d:    tiles of A_d | of its node, as they come | of the node on the left | ...
//
// Source: "Overlapping AllGather GEMM" (Triton-distributed), between nodes; where this differs from it, the
// page beside this file says why.
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

/// Multiprocessors of a GPU that the product leaves to NCCL, of so many: enough blocks for a network card, on
/// an H100 four of 132.
constexpr int rail_blocks(int multiprocessors) { return std::max(1, multiprocessors / 32); }

/// C = A B in T with sums in f32. Rank r has A_r[m_r, k] and B_r[k, n_r], or B_r[n_r, k] with Major::kK, and
/// gets C_r[m, n_r], row-major, with m_r and n_r by balanced_share(); some may be 0. Ranks make nodes as in
/// Nodes. `Shape` is a block's tile.
template <SixteenBit T, Major B = Major::kMN, typename Shape = tensor_core_gemm::Tile<128, 256, 4>>
class TwoLevelGemm {
 public:
  /// Collective. Allocates all that run() needs, makes each of its copies once and opens the rails. Throws as
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

  /// Enqueues one call on `stream`; a, b and c belong to it until `stream` gets past it. All ranks make the
  /// same calls in the same order. Calls may follow each other at once, on streams that are ordered. The
  /// pointers are aligned to 16 bytes.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    arrived_.begin_call();
    // Transfers first: a kernel that waits for what the host has yet to enqueue may wait for ever.
    gather_shards(a, stream);
    copy_edges(a, stream);
    multiply(a, b, c, stream);
    close(stream);
  }

  /// The transfers alone: a call in which nobody multiplies. `stream` gets past it when all shards are here.
  void gather(const T* a, cudaStream_t stream) {
    arrived_.begin_call();
    gather_shards(a, stream);
    for (int arrival = 1; arrival < rank_.size(); ++arrival) arrived_.await(nodes_.owner(arrival), stream);
    join(stream);
  }

  /// What `rank` moves along its rail in one call, with `ranks` ranks in nodes of `per_node`. Of shards
  /// without rows nothing is sent.
  static Cost rail_cost(MatmulShape whole, int ranks, int rank, int per_node) {
    const Nodes nodes = nodes_of(rank, ranks, per_node);
    const std::int64_t own = bytes_of(whole, ranks, rank);
    Cost cost{.messages = own > 0 ? nodes.count() - 1 : 0, .bytes_out = (nodes.count() - 1) * own};
    for (int step = 1; step < nodes.count(); ++step)
      cost.bytes_in += bytes_of(whole, ranks, nodes.at(-step, 0));
    return cost;
  }
  /// The same inside its node. A message is a shard and the signal behind it, or the signal alone if it has
  /// no rows.
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
  /// Both together, and what the rank launches and keeps. The page's cost card and the tests come from these.
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
    // Both streams begin behind the caller's: it makes A there, and has ended the calls before.
    CUDA_CHECK(cudaEventRecord(ready_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(rail_stream(), ready_));
    CUDA_CHECK(cudaStreamWaitEvent(node_stream(), ready_));
    send_along_the_rail(a);
    push(rank_.id(), a);
    forward();
    CUDA_CHECK(cudaEventRecord(done_, node_stream()));
  }

  // ---- Phase 1, between nodes: the own shard along the rail -----------------------------------------------
  // In step i to the node i places to the right, while the shard of the node i places to the left comes. One
  // after the other: so the first has the rail to itself, and can be passed on while the next one comes. Send
  // and receive of a step are one group: neither waits for the other.
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

  // ---- Phase 2, inside the node: the own shard, then each that came along the rail ------------------------
  /// A shard to all others of the node, the nearest left neighbour first, as in chapter 17.
  void push(int owner, const T* shard) {
    for (int step = 1; step < nodes_.per_node; ++step) {
      const int receiver = nodes_.at(0, -step);
      const TimelineScope name("push shard ", owner, " to rank ", receiver);
      // [task push: in which order do the shard and its signal go, and to whom?]
      if (elements(owner) > 0)
        CUDA_CHECK(cudaMemcpyAsync(place_of(owner, receiver), shard, elements(owner) * sizeof(T),
                                   cudaMemcpyDefault, node_stream()));
      // Without rows, too: the signal also tells that this rank has finished its last call, see close().
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

  // ---- The own shard's edges, the product, the end: as in chapter 17 --------------------------------------
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
    if (share_.k == 0) {  // no stage, and no sum
      CUDA_CHECK(cudaMemsetAsync(c, 0, share_.m * share_.n * sizeof(T), stream));
      return;
    }
    const TimelineScope name("multiply shards as they come");
    const int own_rows = shards_.end(rank_.id()) - shards_.begin(rank_.id());
    using tensor_core_gemm::tensor_map;
    const tensor_core_gemm::OperandMaps<T, Shape, B> maps(rank_.size() == 1 ? a : gathered(rank_.id()), b,
                                                          share_);
    // A map of no rows cannot be: without a shard, no tile reads it.
    const CUtensorMap own = own_rows > 0 ? tensor_map(a, own_rows, share_.k, Shape::kM) : maps.a;
    const CUtensorMap to_c = tensor_map(c, share_.m, share_.n, tensor_core_gemm::kGroupRows);
    const Arrivals arrivals{shards_, rank_.id(), arrived_.word(rank_.id(), 0), arrived_.epoch(),
                            rank_.abort_flag()};
    multiply_on_signals<T, Shape, B, NodeOrder>
        <<<blocks_, kThreads, sizeof(Memory), stream>>>(own, maps.a, maps.b, to_c, order_, arrivals);
    CUDA_CHECK(cudaGetLastError());
  }

  // Calls alternate between two halves of the gathered A, and chapter 17 says why a rank may push into one
  // again two calls later: it has seen a signal of each rank that it pushes to in the call between. Those are
  // the ranks of its node, and each raises the signal of its own shard. Along the rail nobody writes into
  // another's memory: what comes is received on this rank's own stream, behind its own earlier calls.
  void close(cudaStream_t stream) {
    for (int arrival = 1; arrival < rank_.size(); ++arrival) {
      const int owner = nodes_.owner(arrival);
      if (blocks_ == 0 || elements(owner) == 0) arrived_.await(owner, stream);
    }
    join(stream);
  }

  /// The caller's stream waits for the transfers: `a` is the caller's again. The node's stream has waited for
  /// a signal behind each step of the rail's, and so also for what was sent in it.
  void join(cudaStream_t stream) {
    if (rank_.size() > 1) CUDA_CHECK(cudaStreamWaitEvent(stream, done_));
  }

  // ---- Before the first call ------------------------------------------------------------------------------
  /// As many blocks as find room at the same time, beside those of NCCL. A block that waits keeps its
  /// multiprocessor: if all were taken, NCCL could never bring what the blocks wait for.
  void prepare(Tiling tiling) {
    const int copies = rank_.shares_gpu() ? 1 : 0;  // within the GPU that ranks share
    const int nccl = rail_ != nullptr ? rail_blocks(multiprocessors_) : 0;
    const int room = tensor_core_gemm::multiprocessors_to_wait_on(rank_, nccl + copies);
    if (tiling.tiles() == 0) return;
    blocks_ = std::min(tiling.tiles(), room);
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)));
    require_resident(rank_, kKernel, kThreads, sizeof(Memory), blocks_);  // loads it, too
  }

  /// A call without a product: each copy once, and NCCL connects the nodes in the first one. Neither may
  /// happen while anything waits.
  void warm_up() {
    if (rank_.size() > 1 && share_.k > 0) {
      const DeviceBuffer<T> a(rank_.device(), static_cast<std::size_t>(elements(rank_.id())));
      CUDA_CHECK(cudaMemset(a.data(), 0, a.bytes()));
      CUDA_CHECK(cudaDeviceSynchronize());
      rank_.barrier();
      gather(a.data(), rank_.stream());
      rank_.synchronize(rank_.stream());
      rank_.barrier();  // before memory is freed, which waits for the GPU, and so for who shares it
    }
    rank_.barrier();
  }

  /// A node is in one process: only there its ranks reach each other's memory.
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
  /// All of A on every rank; a rank alone has it already.
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    return ranks == 1 ? 0 : whole.m * whole.k;
  }
  /// Elements of that rank's shard.
  std::int64_t elements(int owner) const { return (shards_.end(owner) - shards_.begin(owner)) * share_.k; }
  /// Where the owner's shard lies in the gathered A of `rank`.
  T* place_of(int owner, int rank) const { return gathered(rank) + shards_.begin(owner) * share_.k; }
  /// A on that rank, as far as it has come in this call.
  T* gathered(int rank) const { return gathered_.on(rank, 0, arrived_.epoch()); }
  // Both of high priority: transfers go before products.
  cudaStream_t node_stream() { return rank_.transfer_stream(0); }
  cudaStream_t rail_stream() { return rank_.transfer_stream(1); }

  Rank& rank_;
  Nodes nodes_;
  MatmulShape share_;  // of the product: all rows, own columns
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
