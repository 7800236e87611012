// Clusters, as <cuda/ptx> has them: called by the running CUDA thread. A kernel without __cluster_dims__ has
// clusters of one block.
#pragma once

#include <cstdint>

namespace vgpu {

/// The block's number in its cluster, and how many blocks that has.
std::uint32_t cluster_rank();
std::uint32_t cluster_size();
/// The cluster's number in the grid, and how many that has.
std::uint32_t cluster_number();
std::uint32_t cluster_count();

/// The cluster's barrier: accesses before a releasing arrival are ordered before those after an acquiring
/// wait.
void cluster_arrive(bool releases);
void cluster_wait(bool acquires);

/// The same place in the shared memory of another block of the cluster.
void* cluster_map(const void* address, std::uint32_t rank);
/// The rank of the block in whose shared memory the address is.
std::uint32_t cluster_owner(const void* address);
/// Arrives at an mbarrier of any block of the cluster.
void cluster_mbarrier_arrive(std::uint64_t* barrier, std::uint32_t count);

}  // namespace vgpu
