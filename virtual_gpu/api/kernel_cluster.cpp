// What kernels of clusters call through <cuda/ptx>.
#include "vgpu/cluster.h"

#include <string>

#include "api/in_unit.hpp"

namespace vgpu {
namespace {

/// The rank of the block whose shared memory holds the word.
std::size_t owner(Block& block, const void* address, std::size_t bytes, const char* action,
                  const void* caller) {
  const std::size_t rank = block.cluster().owner_of(address, bytes);
  if (rank == block.cluster().size())
    block.fault(block.who() + action + at_line(caller) +
                " an address that is no shared memory of its cluster");
  return rank;
}

}  // namespace

std::uint32_t cluster_rank() {
  return in_unit("get_sreg_cluster_ctarank", [](Block& block, AsyncUnit&) {
    return static_cast<std::uint32_t>(block.cluster().rank_of(block));
  });
}

std::uint32_t cluster_size() {
  return static_cast<std::uint32_t>(running_block("get_sreg_cluster_nctarank").grid().cluster);
}

std::uint32_t cluster_number() {
  const Block& block = running_block("get_sreg_clusterid_x");
  return static_cast<std::uint32_t>(block.linear_index() % block.grid().grid.x / block.grid().cluster);
}

std::uint32_t cluster_count() {
  const Grid& grid = running_block("get_sreg_nclusterid_x").grid();
  return static_cast<std::uint32_t>(grid.grid.x / grid.cluster);
}

void cluster_arrive(bool releases) {
  const void* caller = __builtin_return_address(0);
  if (hb::left_out("barrier_cluster_arrive")) releases = false;
  in_unit("barrier_cluster_arrive",
          [&](Block& block, AsyncUnit&) { block.cluster().arrive(block, releases, caller); });
}

void cluster_wait(bool acquires) {
  const void* caller = __builtin_return_address(0);
  if (hb::left_out("barrier_cluster_wait")) acquires = false;
  in_unit("barrier_cluster_wait",
          [&](Block& block, AsyncUnit&) { block.cluster().wait(block, acquires, caller); });
}

void* cluster_map(const void* address, std::uint32_t rank) {
  const void* caller = __builtin_return_address(0);
  return in_unit("__cluster_map_shared_rank", [&](Block& block, AsyncUnit&) {
    Cluster& cluster = block.cluster();
    if (rank >= cluster.size()) {
      block.fault(block.who() + "maps shared memory" + at_line(caller) + " to rank " + std::to_string(rank) +
                  " of a cluster of " + std::to_string(cluster.size()));
    }
    void* there = block.shared().same_in(cluster.block(rank).shared(), address);
    if (there == nullptr)
      block.fault(block.who() + "maps" + at_line(caller) + " an address that is not in its shared memory");
    return there;
  });
}

std::uint32_t cluster_owner(const void* address) {
  const void* caller = __builtin_return_address(0);
  return in_unit("getctarank", [&](Block& block, AsyncUnit&) {
    return static_cast<std::uint32_t>(owner(block, address, 1, "asks for the rank of", caller));
  });
}

void cluster_mbarrier_arrive(std::uint64_t* barrier, std::uint32_t count) {
  const void* caller = __builtin_return_address(0);
  const bool release = !hb::left_out("mbarrier_arrive");
  in_unit("mbarrier_arrive", [&](Block& block, AsyncUnit&) {
    const std::size_t rank = owner(block, barrier, sizeof *barrier, "arrives at", caller);
    Block& there = block.cluster().block(rank);
    if (block.cluster().has_ended(rank)) {
      block.fault(block.who() + "arrives" + at_line(caller) + " at an mbarrier of " + there.name() +
                  ", which has ended");
    }
    AsyncUnit::of(there).barriers.arrive(block, barrier, count, 0, release, caller);
  });
}

}  // namespace vgpu
