#include "engine/hopper/named_barriers.hpp"

#include "engine/kernel/block.hpp"

namespace vgpu {

void NamedBarriers::wait(int id, int threads, const void* caller) {
  const auto name = [id] { return "named barrier " + std::to_string(id); };
  if (id < 1 || id > 15)
    block_.fault(block_.who() + "arrives at " + name() + ": 1 to 15 are possible, 0 is __syncthreads");
  if (threads < 32 || threads % 32 != 0 || threads > block_.thread_count()) {
    block_.fault(block_.who() + "arrives at " + name() + " of " + std::to_string(threads) +
                 " threads: it must be a multiple of 32, and at most the " +
                 std::to_string(block_.thread_count()) + " of the block");
  }
  Barrier& barrier = barriers_[static_cast<std::size_t>(id)];
  if (barrier.waiting.empty()) {
    barrier.threads = threads;
    barrier.caller = caller;
  } else if (barrier.threads != threads) {
    block_.fault(block_.who() + "arrives at " + name() + " of " + std::to_string(threads) + " threads" +
                 at_line(caller) + ", others at one of " + std::to_string(barrier.threads) +
                 at_line(barrier.caller));
  }
  const OrderPoint& order = barrier.order[barrier.parity];
  block_.release(order);
  if (static_cast<int>(barrier.waiting.size()) + 1 == threads) {
    barrier.parity ^= 1;
    block_.wake(barrier.waiting);
  } else {
    block_.park(&barrier.waiting);
  }
  block_.acquire(order);
}

std::string NamedBarriers::describe() const {
  std::string text;
  for (std::size_t id = 1; id < barriers_.size(); ++id) {
    const Barrier& barrier = barriers_[id];
    if (barrier.waiting.empty()) continue;
    text += " " + std::to_string(barrier.waiting.size()) + " of " + std::to_string(barrier.threads) +
            " at named barrier " + std::to_string(id) + at_line(barrier.caller);
  }
  return text;
}

}  // namespace vgpu
