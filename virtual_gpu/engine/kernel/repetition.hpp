// Whether a sequence of states repeats itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace vgpu {

/// Brent's algorithm: each state is compared with an earlier one, which is replaced after 1, 2, 4, ... of
/// them. Finds periods of at most kLongest.
class Repetition {
 public:
  static constexpr std::uint64_t kLongest = 128;

  /// The next state. True if an earlier one has come again, and the states since then are as after that one.
  bool add(std::uint64_t state) {
    ++since_;
    if (state == remembered_) {
      period_ = std::exchange(since_, 0);
      return true;
    }
    if (since_ < period_) return true;
    period_ = 0;
    if (since_ >= reach_) {
      remembered_ = state;
      since_ = 0;
      reach_ = std::min(2 * reach_, kLongest);
    }
    return false;
  }

 private:
  std::uint64_t remembered_ = 0;
  std::uint64_t since_ = 0;   // states behind the remembered one
  std::uint64_t reach_ = 1;   // of them before another one is remembered
  std::uint64_t period_ = 0;  // 0: the states do not repeat
};

}  // namespace vgpu
