// The blocks of a cluster: resident together, they meet at a barrier and reach each other's shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/hopper/proxy_contexts.hpp"

namespace vgpu {

class Block;
struct Thread;

class Cluster {
 public:
  /// Blocks join before any of them runs. A block's rank is how many joined before it.
  void join(Block& block);
  std::size_t size() const { return members_.size(); }
  std::size_t rank_of(const Block& block) const;
  Block& block(std::size_t rank) const { return *members_[rank].block; }
  bool has_ended(std::size_t rank) const { return members_[rank].ended != nullptr; }
  /// True if another block runs, which may wake this one.
  bool others_live(const Block& block) const;
  /// Owns a block that has ended: the others may still address its shared memory.
  void keep(std::unique_ptr<Block> block);
  /// The rank of the block whose shared memory holds these bytes; size() if none does.
  std::size_t owner_of(const void* address, std::size_t bytes) const;

  // barrier.cluster, called for the running thread of `block`.
  void arrive(Block& block, bool release, const void* caller);
  void wait(Block& block, bool acquire, const void* caller);
  /// The thread ends: the barrier no longer waits for it.
  void leave(const Thread& thread);

  /// An error's sentence if copies or arrivals are still in flight to `block`, which ends; else "".
  std::string describe_reaching(const Block& block) const;

 private:
  struct Member {
    Block* block;
    std::unique_ptr<Block> ended;
  };
  void open_if_complete();

  std::vector<Member> members_;
  std::size_t alive_ = 0, arrived_ = 0;  // threads
  std::uint64_t phase_ = 0;
  OrderPoint order_[2];  // by the parity of the phase
  double latest_ = 0;    // modelled time of the last arrival, ns
  double opened_[2] = {0, 0};
};

}  // namespace vgpu
