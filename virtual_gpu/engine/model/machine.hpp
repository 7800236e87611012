// The modelled machine: what it has and how long things take. Read from a JSON file.
#pragma once

#include <cstddef>
#include <string>

namespace vgpu {

/// The most GPUs of a machine.
inline constexpr int kMaxGpus = 64;

/// Times in nanoseconds, rates in bytes per nanosecond (= GB/s), sizes in bytes.
struct Machine {
  std::string name;
  int gpus;

  std::string gpu_name;
  int compute_major, compute_minor;
  int multiprocessors;
  double clock_ghz;
  int lanes;  // CUDA threads that one multiprocessor advances per cycle
  int max_threads, max_blocks;
  std::size_t shared_per_multiprocessor, shared_per_block, shared_per_block_opt_in;
  std::size_t memory_bytes;
  // Allocations may exceed the host's memory as long as little of them is written. Default: they are refused,
  // because running out of memory ends the program.
  bool memory_on_demand;
  double memory_rate;
  int copy_engines;  // for each of: from the host, to the host, between GPUs
  double cycles_per_basic_block;
  double launch_ns, poll_ns;
  double bulk_latency_ns;  // of a kernel's bulk copy (TMA), beside what its bytes take. A file need not say.
  // Launching a graph, and starting one of its kernels. Default: a kernel's launch, and half of it.
  double graph_launch_ns, graph_node_ns;
  // A library's GEMM: its tile of C, and the rate of the whole GPU, operations per ns (= GFLOP/s).
  int product_tile_rows, product_tile_columns;  // of a column-major C
  double product_rate_f16, product_rate_f32;

  double host_call_ns, host_copy_latency_ns, host_copy_rate;
  double host_memory_rate;  // of what the CPU reads and writes, all host threads together
  bool peer_access;
  bool peer_atomics;                            // read-modify-writes of another GPU's memory are atomic
  double peer_copy_latency_ns, peer_copy_rate;  // the rate of a link, too: each GPU has one out and one in
  double signal_ns;  // from a value written by one GPU's stream until another GPU's stream has seen it

  // Consecutive GPUs of a node; 0: one node, and the rest is optional. The links above are those inside a
  // node. Between nodes each GPU has a rail of its own, one way out and one way in.
  int gpus_per_node;
  // Of a copy; NCCL takes the latency beside its own. Signals take as long as inside a node.
  double rail_latency_ns, rail_rate;

  // A collective of NCCL: channels (one block each), its time without data, bytes per ns that leave a GPU.
  int nccl_channels;
  double nccl_latency_ns, nccl_rate;

  /// True if the two GPUs are in different nodes.
  bool between_nodes(int a, int b) const {
    return gpus_per_node > 0 && a / gpus_per_node != b / gpus_per_node;
  }
  /// From a kernel's turn in its stream until its first block begins.
  double kernel_start_ns(bool in_graph) const { return in_graph ? graph_node_ns : launch_ns; }
};

/// Reads `machines/NAME.json` or, if there is none, the file of that path. Throws std::runtime_error for a
/// missing file, bad JSON, a missing or unknown field, a value out of range.
Machine load_machine(const std::string& name_or_file);

/// The file that load_machine() reads for that.
std::string machine_file(const std::string& name_or_file);

}  // namespace vgpu
