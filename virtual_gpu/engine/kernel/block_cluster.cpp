// The blocks of a cluster.
#include <algorithm>

#include "engine/kernel/block.hpp"

namespace vgpu {

void Cluster::join(Block& block) {
  members_.push_back({&block, nullptr});
  alive_ += block.alive_count();
}

std::size_t Cluster::rank_of(const Block& block) const {
  return static_cast<std::size_t>(std::ranges::find(members_, &block, &Member::block) - members_.begin());
}

bool Cluster::others_live(const Block& block) const {
  return std::any_of(members_.begin(), members_.end(), [&block](const Member& member) {
    return member.block != &block && member.ended == nullptr;
  });
}

void Cluster::keep(std::unique_ptr<Block> block) {
  Member& member = members_[rank_of(*block)];
  member.ended = std::move(block);
}

std::size_t Cluster::owner_of(const void* address, std::size_t bytes) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.block->shared().offset_of(address, bytes).has_value();
  });
  return static_cast<std::size_t>(found - members_.begin());
}

void Cluster::arrive(Block& block, bool release, const void* caller) {
  Thread& thread = block.current();
  if (thread.arrived_at_cluster) {
    block.fault(block.who() + "arrives at the cluster's barrier twice" + at_line("called", caller) +
                ": call barrier_cluster_wait between");
  }
  if (release) block.release(order_[phase_ & 1]);
  thread.arrived_at_cluster = true;
  thread.cluster_phase = phase_;
  latest_ = std::max(latest_, block.now());
  ++arrived_;
  open_if_complete();
}

void Cluster::wait(Block& block, bool acquire, const void* caller) {
  Thread& thread = block.current();
  if (!thread.arrived_at_cluster) {
    block.fault(block.who() + "waits at the cluster's barrier" + at_line("called", caller) +
                " without having arrived there");
  }
  const std::size_t parity = thread.cluster_phase & 1;
  if (thread.cluster_phase == phase_) block.park(&block.at_cluster_barrier());
  thread.arrived_at_cluster = false;
  if (members_.size() > 1) block.pass_time_until(opened_[parity]);
  if (acquire) block.acquire(order_[parity]);
}

void Cluster::leave(const Thread& thread) {
  --alive_;
  if (thread.arrived_at_cluster && thread.cluster_phase == phase_) --arrived_;
  open_if_complete();
}

void Cluster::open_if_complete() {
  if (arrived_ == 0 || arrived_ != alive_) return;
  opened_[phase_ & 1] = latest_;
  ++phase_;
  arrived_ = 0;
  for (const Member& member : members_) member.block->wake(member.block->at_cluster_barrier());
}

void Block::join(Cluster& cluster) {
  cluster_ = &cluster;
  cluster.join(*this);
}

Cluster& Block::cluster() {
  if (cluster_ == nullptr) join(*(own_cluster_ = std::make_unique<Cluster>()));
  return *cluster_;
}

std::string Block::describe_shared(const void* address) const {
  const std::size_t blocks = cluster_ == nullptr ? 1 : cluster_->size();
  for (std::size_t rank = 0; rank < blocks; ++rank) {
    const Block& block = cluster_ == nullptr ? *this : cluster_->block(rank);
    if (std::string text = block.shared_.describe(address, block.name()); !text.empty()) return text;
  }
  return {};
}

}  // namespace vgpu
