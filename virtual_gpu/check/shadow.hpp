// The shadow itself, as the hooks read it.
#pragma once

#include "check/memory_state.hpp"

namespace vgpu::memcheck {

inline constexpr std::size_t kReserved = std::size_t{1} << 40;

/// State of a byte: its owner, and in the lowest bit whether it was written. Untouched shadow pages are zero:
/// no owner.
using State = std::uint8_t;
inline constexpr State kWritten = 1;
constexpr State state_of(Owner owner, bool written) {
  return static_cast<State>(owner << 1 | static_cast<int>(written));
}
constexpr Owner owner_of(State state) { return static_cast<Owner>(state >> 1); }

struct Shadow {
  std::uintptr_t begin = std::uintptr_t{1}
                         << 63;  // of the memory: before it is reserved, no address of a program
  State* states = nullptr;
  Rights* running = nullptr;
};
extern Shadow shadow;

/// The states from that address on; nullptr if it is no memory of the virtual GPUs.
inline State* states(const void* memory) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(memory) - shadow.begin;
  return offset < kReserved ? shadow.states + offset : nullptr;
}

}  // namespace vgpu::memcheck
