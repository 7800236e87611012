// How the threads of a block look at words, and wait for other blocks.
#include <algorithm>

#include "engine/kernel/block.hpp"

namespace vgpu {

void Block::poll(double nanoseconds) {
  const RuntimeTurn turn(*this, *current_);
  poll_time_ = polling_.empty() ? nanoseconds : std::min(poll_time_, nanoseconds);
  polling_.push(current_);
  let_others_run();
}

void Block::look(const void* address, std::uint64_t bits) {
  SpinDetection::Looks& looks = current_->looks;
  switch (spins_.see(looks, address, bits)) {
    case SpinDetection::Next::kGoOn:
      break;
    case SpinDetection::Next::kLetBlockRun:
      wait_for_own_block();
      break;
    case SpinDetection::Next::kWait:
      poll(grid_.poll_ns);
  }
  SpinDetection::go_on(looks);
}

void Block::wait_for_own_block() {
  const RuntimeTurn turn(*this, *current_);
  looking_.push(current_);
  let_others_run();
}

}  // namespace vgpu
