#include "engine/kernel/spin_detection.hpp"

#include <algorithm>

namespace vgpu {
namespace {

// A thread that has looked at a word so often, and always seen the same, waits for another block. With a
// smaller number, loops that look now and then would be taken for waits, and keep their stacks while other
// blocks run. A larger one costs host time for each wait, some ten nanoseconds a look.
constexpr std::uint64_t kLooksBeforeWait = 1000;
// If all threads of a block wait, each for a word of its own, the looks of all of them together are so many
// sooner; then so many of each will do.
constexpr std::uint64_t kLooksOfAThread = 128;
// What the model does not charge a wait for: in each round that ends with an unsuccessful look, so many basic
// blocks.
constexpr std::uint64_t kBlocksOfALook = 8;

}  // namespace

SpinDetection::Next SpinDetection::see_nothing_new(Looks& looks) {
  if (looks.turn == turns) looks.work += std::min(basic_blocks() - looks.basic_blocks, kBlocksOfALook);
  if (patience_ == 0) patience_ = may_be_impatient_ && scheduler_.pick(2) == 1 ? 1 : kLooksBeforeWait;
  ++looks.unsuccessful, ++in_vain_;
  const bool all_wait = in_vain_ >= kLooksBeforeWait && looks.unsuccessful >= kLooksOfAThread;
  if (looks.unsuccessful < patience_ && !all_wait) return Next::kLetBlockRun;
  waited_ += std::exchange(looks.work, 0);
  return Next::kWait;
}

}  // namespace vgpu
