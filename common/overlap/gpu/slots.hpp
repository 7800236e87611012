// Slots that other ranks write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// `count` slots for values of T on every rank, twice: the calls of an algorithm alternate between the two,
/// so that a rank may write what belongs to its next call while the owner still reads this one's. An
/// algorithm that uses it says why no rank gets two calls ahead. Chapter 04 writes this out. Collective as
/// PeerBuffer is, and throws as it does.
template <typename T>
class Slots {
 public:
  Slots(Rank& rank, int count, std::int64_t elements, Reach reach = Reach::kAllRanks)
      : count_(count),
        pitch_(pitch(elements)),
        memory_(rank, static_cast<std::size_t>(bytes(count, elements)) / sizeof(T), reach) {}

  /// Elements from the beginning of one slot to that of the next. Rounded up so that all slots are aligned as
  /// cudaMalloc aligns: cuBLAS chooses its kernels by the alignment, too.
  static constexpr std::int64_t pitch(std::int64_t elements) {
    constexpr std::int64_t kAlignment = 256 / sizeof(T);
    return (elements + kAlignment - 1) / kAlignment * kAlignment;
  }
  /// Bytes of both sets on each rank.
  static constexpr std::int64_t bytes(int count, std::int64_t elements) {
    return 2 * count * pitch(elements) * std::int64_t{sizeof(T)};
  }

  /// Slot `i` of that rank in the call with this number, which is Signals::epoch().
  T* on(int rank, int i, std::uint32_t epoch) const {
    return memory_.on(rank) + (epoch % 2 * std::int64_t{count_} + i) * pitch_;
  }
  std::int64_t pitch() const { return pitch_; }  ///< of these slots

 private:
  int count_;
  std::int64_t pitch_;
  PeerBuffer<T> memory_;  // [call mod 2][slot]
};

}  // namespace overlap
