// Machines with round numbers, for results that can be worked out by hand.
#pragma once

#include "machine.hpp"

namespace overlap::planner {

/// 100 multiprocessors; a wave of 128 x 256 tiles with k = 1024 takes 10 us; the link carries 1000 bytes in
/// 1 us; no latencies, memory at once, and no limit of power.
inline Machine round_machine() {
  Machine machine;
  machine.name = "round";
  machine.gpus_per_node = 8;
  machine.multiprocessors = 100;
  machine.tile = {128, 256};
  machine.product_rate = 100 * (2.0 * 128 * 256 * 1024) / 10;
  machine.smaller_tile = 0.5;  // never worth it
  machine.memory_rate = 1e30;
  machine.link_rate = machine.collective_rate = machine.send_rate = 1000;
  machine.network_rate = 100;
  machine.compare_rate = 1000;
  return machine;
}

}  // namespace overlap::planner
