// The machine that a prediction is for: a machine file of the virtual GPUs, and in its section "plan" what a
// prediction wants to know beyond it.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "overlap/gpu/backend.hpp"

namespace overlap::planner {

/// A constant of a machine file's section "plan", and what it was taken from.
struct Source {
  std::string name;  ///< the field
  double is = 0;     ///< its number, in the field's unit
  std::string from;  ///< the measured row, or the assumption
};

/// Physical constants of a GPU, its links and its host. Times in microseconds, rates in bytes (products: in
/// floating point operations) per microsecond. No constant belongs to an algorithm.
struct Machine {
  std::string name;
  int gpus_per_node = 1;  ///< GPUs that reach each other's memory

  // Products: tiles in waves, see common/include/overlap/bench/waves.hpp.
  int multiprocessors = 1;
  Tile tile = {};           ///< the library's largest tile of C
  double product_rate = 1;  ///< of full waves of such tiles, on the whole GPU
  double smaller_tile = 1;  ///< rate of a tile of half the size against the next larger one, 0 to 1
  double sustained = 1;     ///< rate under the limit of power against `product_rate`, 0 to 1
  double sustained_us = 0;  ///< products of a call that take this long have lost half of that
  bool whole_waves = true;  ///< false: as if a partial wave cost only its part. To see what waves cost

  double memory_rate = 1;  ///< what kernels reach, reading and writing together

  // Latencies on a GPU.
  double call_us = 0;    ///< before the first kernel of a call and behind the last one
  double launch_us = 0;  ///< from one kernel of a stream to the next
  double event_us = 0;   ///< from a stream to another one of the GPU

  // Copies and signals between GPUs that reach each other's memory.
  double push_us = 0, pull_us = 0;  ///< of a copy, beside what its bytes take
  double link_rate = 1;             ///< out of a GPU, and as much into it
  double signal_us = 0;             ///< raised on a GPU, until a stream of another goes on

  // NCCL.
  int nccl_blocks = 0;                                              ///< multiprocessors that a transfer holds
  double collective_us = 0, registered_us = 0, copy_engine_us = 0;  ///< of a collective, by the mode of NCCL
  double message_us = 0;                                            ///< of each step of its ring
  double collective_rate = 1;                                       ///< bytes out of each GPU
  double send_us = 0;                                               ///< of a send and a receive
  double send_rate = 1;                                             ///< of them

  // Between nodes: a way out for each GPU.
  double network_us = 0;    ///< of a message
  double network_rate = 1;  ///< bytes out of each GPU

  // The host, of what the host drives.
  double host_launch_us = 0;  ///< between two launches
  double host_wait_us = 0;    ///< waiting for the GPU once, with the copy of what is waited for
  double graph_node_us = 0;   ///< from a kernel of a graph to the next one
  double compare_rate = 1;    ///< comparisons of two row numbers per microsecond

  std::vector<Source> sources;  ///< of the constants of "plan", in the file's order
};

/// What can hold a call up.
enum class Bound { kProduct, kWaves, kLink, kLatency, kMemory, kHost };
/// "product", "waves", ...
const char* name_of(Bound bound);
/// All of them.
const std::vector<Bound>& all_bounds();

/// The machine without that: infinitely fast, or with partial waves that cost only their part.
Machine without(Machine machine, Bound bound);

/// The machine of that name, or of that file. `gpus_per_node`: how many reach each other's memory; 0: as
/// many as the file says. Throws UsageError with one sentence.
Machine read_machine(const std::string& name_or_file, int gpus_per_node);

}  // namespace overlap::planner
