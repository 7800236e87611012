// Cooperative groups: blocks, tiles of a warp, coalesced threads, grids of a cooperative launch. Not
// supported: tiles of several warps, labelled partitions, clusters.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cuda_runtime.h"

#define VGPU_UNSUPPORTED_GROUP(name, instead)                                                             \
  template <class... Arguments>                                                                           \
  __attribute__((error("cooperative_groups::" #name " is not supported on virtual GPUs: " instead))) void \
  name(Arguments&&...);

namespace vgpu {
/// The grid barrier of a cooperative launch.
void grid_sync();

inline unsigned int rank_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline unsigned int threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned int lanes_of_tile(unsigned int size) {
  const unsigned int lanes = size < 32 ? (1u << size) - 1 : ~0u;
  return lanes << (static_cast<unsigned int>(lane_index()) / size * size);
}
}  // namespace vgpu

namespace cooperative_groups {

/// Any group of the threads of a block: all of them, or those lanes of a warp.
class thread_group {
 public:
  void sync() const {
    if (lanes_ == 0) return __syncthreads();
    __syncwarp(lanes_);
  }
  unsigned long long size() const { return num_threads(); }
  unsigned long long num_threads() const { return lanes_ == 0 ? vgpu::threads_of_block() : __popc(lanes_); }
  unsigned long long thread_rank() const {
    return lanes_ == 0 ? vgpu::rank_in_block() : __popc(lanes_ & ((1u << vgpu::lane_index()) - 1));
  }
  bool is_valid() const { return true; }

 protected:
  explicit thread_group(unsigned int lanes) : lanes_(lanes) {}
  friend thread_group tiled_partition(const thread_group& parent, unsigned int size);
  unsigned int lanes_;
};

class thread_block : public thread_group {
 public:
  static void sync() { __syncthreads(); }
  static unsigned int size() { return vgpu::threads_of_block(); }
  static unsigned int num_threads() { return size(); }
  static unsigned int thread_rank() { return vgpu::rank_in_block(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }

 private:
  thread_block() : thread_group(0) {}
  friend thread_block this_thread_block();
};
inline thread_block this_thread_block() { return {}; }

/// Functions of groups of lanes; ranks are those within the group.
class lanes_group : public thread_group {
 public:
  unsigned int size() const { return num_threads(); }
  unsigned int num_threads() const { return static_cast<unsigned int>(thread_group::num_threads()); }
  unsigned int thread_rank() const { return static_cast<unsigned int>(thread_group::thread_rank()); }
  template <class T>
  T shfl(T value, int rank) const {
    return vgpu::warp_shuffle(lanes_, value, lane_of(rank));
  }
  template <class T>
  T shfl_down(T value, unsigned int delta) const {
    return shfl_from(value, thread_rank() + delta);
  }
  template <class T>
  T shfl_up(T value, unsigned int delta) const {
    return shfl_from(value, thread_rank() - delta);
  }
  template <class T>
  T shfl_xor(T value, unsigned int mask) const {
    return shfl_from(value, thread_rank() ^ mask);
  }
  int any(int predicate) const { return __any_sync(lanes_, predicate); }
  int all(int predicate) const { return __all_sync(lanes_, predicate); }
  unsigned int ballot(int predicate) const { return packed(__ballot_sync(lanes_, predicate)); }
  template <class T>
  unsigned int match_any(T value) const {
    return packed(__match_any_sync(lanes_, value));
  }

 protected:
  using thread_group::thread_group;

 private:
  /// A lane whose source lies outside the group gets its own value.
  template <class T>
  T shfl_from(T value, unsigned int rank) const {
    return shfl(value, static_cast<int>(rank < num_threads() ? rank : thread_rank()));
  }
  int lane_of(int rank) const {
    unsigned int lanes = lanes_;
    for (int skipped = rank % static_cast<int>(num_threads()); skipped > 0; --skipped) lanes &= lanes - 1;
    return __ffs(static_cast<int>(lanes)) - 1;
  }
  unsigned int packed(unsigned int bits) const {
    unsigned int result = 0, rank = 0;
    for (unsigned int lanes = lanes_; lanes != 0; lanes &= lanes - 1, ++rank)
      result |= (bits >> (__ffs(static_cast<int>(lanes)) - 1) & 1) << rank;
    return result;
  }
};

template <unsigned int Size, class Parent = void>
class thread_block_tile : public lanes_group {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0,
                "tiles of more than a warp are not supported on virtual GPUs: use the block");

 public:
  static constexpr unsigned int size() { return Size; }
  static constexpr unsigned int num_threads() { return Size; }
  static unsigned int thread_rank() { return vgpu::rank_in_block() % Size; }
  static unsigned int meta_group_rank() { return parent_rank() / Size; }
  static unsigned int meta_group_size() { return (parent_size() + Size - 1) / Size; }
  thread_block_tile() : lanes_group(vgpu::lanes_of_tile(Size)) {}

 private:
  static unsigned int parent_rank() {
    if constexpr (requires { Parent::size(); }) return Parent::thread_rank();
    return vgpu::rank_in_block();
  }
  static unsigned int parent_size() {
    if constexpr (requires { Parent::size(); }) return Parent::size();
    return vgpu::threads_of_block();
  }
};
template <unsigned int Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}
inline thread_group tiled_partition(const thread_group&, unsigned int size) {
  return thread_group(vgpu::lanes_of_tile(size));
}

/// CUDA does not define which threads are coalesced; here each thread is a group of its own.
class coalesced_group : public lanes_group {
 private:
  coalesced_group() : lanes_group(1u << vgpu::lane_index()) {}
  friend coalesced_group coalesced_threads();
};
inline coalesced_group coalesced_threads() { return {}; }

class grid_group {
 public:
  static bool is_valid() { return true; }
  static void sync() { vgpu::grid_sync(); }
  static unsigned long long size() { return num_threads(); }
  static unsigned long long num_threads() { return num_blocks() * vgpu::threads_of_block(); }
  static unsigned long long thread_rank() {
    return block_rank() * vgpu::threads_of_block() + vgpu::rank_in_block();
  }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  static dim3 block_index() { return blockIdx; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 group_dim() { return gridDim; }
};
inline grid_group this_grid() { return {}; }

template <class Group>
void sync(const Group& group) {
  group.sync();
}
VGPU_UNSUPPORTED_GROUP(this_cluster, "use cuda::ptx")
VGPU_UNSUPPORTED_GROUP(this_multi_grid, "use one grid for each GPU")
VGPU_UNSUPPORTED_GROUP(memcpy_async, "use cuda::memcpy_async, or copy")
VGPU_UNSUPPORTED_GROUP(labeled_partition, "use __match_any_sync")
VGPU_UNSUPPORTED_GROUP(binary_partition, "use __ballot_sync")

}  // namespace cooperative_groups
