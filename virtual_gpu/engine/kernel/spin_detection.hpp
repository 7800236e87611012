// Tells a thread that looks at a word now and then from one that waits until the word changes.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "engine/kernel/coverage.hpp"
#include "engine/schedule.hpp"

namespace vgpu {

/// For the threads of one block.
class SpinDetection {
 public:
  /// Consecutive looks of a thread that saw the same: at one word, or at several in turn.
  struct Looks {
    struct Word {
      const void* address = nullptr;
      std::uint64_t bits = 0;
      unsigned bytes = 0;   // 0: `bits` are no contents of memory
      bool in_row = false;  // seen unchanged in these looks
    };
    std::array<Word, 6> words = {};  // the last ones, in the place of the oldest the next
    unsigned oldest = 0;
    bool waits = false;              // the thread is suspended until its next look
    std::uint64_t unsuccessful = 0;  // all but the first one
    std::uint64_t work = 0;          // basic blocks between them, as far as they may be those of a wait
    std::uint64_t turn = 0;          // when the thread went on after the last one (`turns`)
    std::uint64_t basic_blocks = 0;  // and what the program had run then

    /// The thread waits, and its next looks would see what the last ones saw.
    bool would_see_nothing_new() const;
  };
  /// What a thread does after a look.
  enum class Next { kGoOn, kGoOnAfterWait, kLetBlockRun, kWait };

  /// With a seed, every other block that may be impatient takes each unsuccessful look for a wait, and the
  /// threads of all these give way after some of their writes and waits.
  SpinDetection(Schedule& schedule, bool may_be_impatient)
      : schedule_(schedule), may_be_impatient_(may_be_impatient) {}

  /// The thread has seen `bits` at `address`. If they are unchanged, the other threads of its block go first;
  /// after many such looks it waits.
  Next see(Looks& looks, const void* address, std::uint64_t bits, unsigned bytes) {
    for (Looks::Word& word : looks.words) {
      if (word.address != address) continue;
      if (word.bits == bits) {
        word.in_row = true;
        return see_nothing_new(looks);
      }
      word.bits = bits;
      return begin_row(looks);
    }
    looks.words[looks.oldest] = {address, bits, bytes};
    looks.oldest = (looks.oldest + 1) % looks.words.size();
    return begin_row(looks);
  }
  /// The thread goes on after a look.
  static void go_on(Looks& looks) {
    looks.turn = turns;
    looks.basic_blocks = basic_blocks();
  }
  /// How many polls a thread makes after a write that others may wait for, or after a wait. The more of these
  /// the block has made, the fewer are followed by polls: a program may add all its elements atomically.
  std::uint64_t polls_to_give_way();
  /// Whether a thread of the block has changed a word by an atomic function.
  ///@{
  void note_atomic_write() { writes_atomically_ = true; }
  bool writes_atomically() const { return writes_atomically_; }
  ///@}
  /// Basic blocks, since this was last asked, that were a wait, not work.
  std::uint64_t take_waited() { return std::exchange(waited_, 0); }

 private:
  Next see_nothing_new(Looks& looks);
  Next begin_row(Looks& looks) {
    const bool waited = looks.unsuccessful > 0;
    in_vain_ = 0;
    looks.unsuccessful = looks.work = looks.turn = looks.basic_blocks = 0;
    for (Looks::Word& word : looks.words) word.in_row = false;
    return waited ? Next::kGoOnAfterWait : Next::kGoOn;
  }

  Schedule& schedule_;
  bool may_be_impatient_, writes_atomically_ = false;
  std::uint64_t in_vain_ = 0;   // looks of all threads since one has seen something new
  std::uint64_t patience_ = 0;  // a thread waits after so many unsuccessful looks; chosen at the first one
  std::uint64_t waited_ = 0;
  std::uint64_t chances_ = 0;  // to give way
};

}  // namespace vgpu
