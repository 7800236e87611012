#include "engine/hopper/async_unit.hpp"

#include <utility>
#include <vector>

namespace vgpu {

void AsyncUnit::load(const BulkRequest& request, const void* mbarrier, std::uint16_t mask) {
  std::vector<BulkCopies::Target> targets;
  if (mask == 0) {
    Mbarrier& barrier = barriers.find_published(block_, mbarrier, request.caller);
    targets.push_back({&block_, &barriers, &barrier, request.shared});
  }
  for (std::size_t rank = 0; rank < 16; ++rank) {
    if ((mask >> rank & 1) != 0) targets.push_back(target_of(request, mbarrier, rank));
  }
  copies.issue(request, std::move(targets));
}

BulkCopies::Target AsyncUnit::target_of(const BulkRequest& request, const void* mbarrier, std::size_t rank) {
  Cluster& cluster = block_.cluster();
  if (rank >= cluster.size()) {
    block_.fault(block_.who() + "issues a multicast copy" + at_line(request.caller) + " to rank " +
                 std::to_string(rank) + " of a cluster of " + std::to_string(cluster.size()));
  }
  Block& to = cluster.block(rank);
  if (cluster.has_ended(rank)) {
    block_.fault(block_.who() + "issues a multicast copy" + at_line(request.caller) + " to " + to.name() +
                 ", which has ended");
  }
  const void* word = block_.shared().same_in(to.shared(), mbarrier);
  auto* shared = static_cast<std::byte*>(block_.shared().same_in(to.shared(), request.shared));
  Mbarriers& there = of(to).barriers;
  return {&to, &there, &there.find_published(block_, word, request.caller), shared};
}

bool AsyncUnit::do_needed() {
  if (block_.schedule().random()) return do_any(false);
  const auto copy = copies.needed_at(), product = products.needed_at();
  if (!product || (copy && *copy < *product)) return copies.do_needed();
  products.do_needed();
  return true;
}

bool AsyncUnit::do_any(bool loads) {
  if (!loads && products.can_do_any() && (!copies.can_do_any() || block_.schedule().pick(2) == 1)) {
    products.do_any();
    return true;
  }
  return copies.do_any(loads);
}

std::string AsyncUnit::finish() {
  for (const auto& sentence : {copies.finish(), barriers.describe_unseen(), products.describe_unawaited(),
                               registers.describe_unfinished()}) {
    if (!sentence.empty()) return sentence;
  }
  return describe_reaching();
}

/// A sentence if a copy of another block is under way to this one; else "".
std::string AsyncUnit::describe_reaching() const {
  const std::size_t blocks = block_.has_neighbours() ? block_.cluster().size() : 0;
  for (std::size_t rank = 0; rank < blocks; ++rank) {
    Block& other = block_.cluster().block(rank);
    if (&other == &block_ || block_.cluster().has_ended(rank)) continue;
    const void* caller = of(other).copies.reaching(block_);
    if (caller == nullptr) continue;
    return "ends although a multicast copy by " + other.name() + at_line("copied", caller) +
           " is under way into its shared memory";
  }
  return {};
}

}  // namespace vgpu
