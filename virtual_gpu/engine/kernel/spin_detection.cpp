#include "engine/kernel/spin_detection.hpp"

#include <algorithm>

namespace vgpu {
namespace {

// Equal looks of a thread at one word after which it counts as waiting. Fewer: loops that look now and then
// would be taken for waits and keep their stacks while other blocks run. More: each wait costs more host
// time, about 10 ns a look.
constexpr std::uint64_t kLooksBeforeWait = 1000;
// The same if all threads of a block wait, each for a word of its own.
constexpr std::uint64_t kLooksOfAThread = 128;
// Basic blocks of an unsuccessful look that the model does not charge.
constexpr std::uint64_t kBlocksOfALook = 8;

/// The word as atomic accesses see it.
std::uint64_t bits_at(const void* address, unsigned bytes) {
  const auto load = [address]<typename T>(T) -> std::uint64_t {
    return __atomic_load_n(static_cast<const T*>(address), __ATOMIC_RELAXED);
  };
  switch (bytes) {
    case 1:
      return load(std::uint8_t{});
    case 2:
      return load(std::uint16_t{});
    case 4:
      return load(std::uint32_t{});
    default:
      return load(std::uint64_t{});
  }
}

}  // namespace

bool SpinDetection::Looks::would_see_nothing_new() const {
  return waits && std::all_of(words.begin(), words.end(), [](const Word& word) {
           return !word.in_row || (word.bytes > 0 && bits_at(word.address, word.bytes) == word.bits);
         });
}

std::uint64_t SpinDetection::polls_to_give_way() {
  // Of so many chances each is taken, then of so many more every second one, then every third one. At most
  // three polls: with one alone, the reader would be chosen before the writer in half of the cases.
  constexpr std::uint64_t kOften = 32, kPolls = 4;
  if (!may_be_impatient_ || schedule_.pick(1 + chances_++ / kOften) != 0) return 0;
  return schedule_.pick(kPolls);
}

SpinDetection::Next SpinDetection::see_nothing_new(Looks& looks) {
  if (looks.turn == turns) looks.work += std::min(basic_blocks() - looks.basic_blocks, kBlocksOfALook);
  if (patience_ == 0) patience_ = may_be_impatient_ && schedule_.pick(2) == 1 ? 1 : kLooksBeforeWait;
  ++looks.unsuccessful, ++in_vain_;
  const bool all_wait = in_vain_ >= kLooksBeforeWait && looks.unsuccessful >= kLooksOfAThread;
  if (looks.unsuccessful < patience_ && !all_wait) return Next::kLetBlockRun;
  waited_ += std::exchange(looks.work, 0);
  return Next::kWait;
}

}  // namespace vgpu
