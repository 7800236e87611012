#include "engine/kernel/spin_detection.hpp"

#include <algorithm>

namespace vgpu {
namespace {

// A thread that has looked at a word so often, and always seen the same, waits for another block. With a
// smaller number, loops that look now and then would be taken for waits, and keep their stacks while other
// blocks run. A larger one costs host time for each wait, some ten nanoseconds a look.
constexpr std::uint64_t kLooksBeforeWait = 1000;
// What the model does not charge a wait for: in each round that ends with an unsuccessful look, so many basic
// blocks.
constexpr std::uint64_t kBlocksOfALook = 8;

}  // namespace

SpinDetection::Next SpinDetection::see_nothing_new(Looks& looks) {
  if (looks.turn == turns) looks.work += std::min(basic_blocks() - looks.basic_blocks, kBlocksOfALook);
  if (patience_ == 0) patience_ = may_be_impatient_ && scheduler_.pick(2) == 1 ? 1 : kLooksBeforeWait;
  if (++looks.unsuccessful < patience_) return Next::kLetBlockRun;
  waited_ += std::exchange(looks.work, 0);
  return Next::kWait;
}

}  // namespace vgpu
