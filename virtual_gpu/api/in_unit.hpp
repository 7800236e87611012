// How kernel functions reach the asynchronous unit of their block.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "engine/hopper/async_unit.hpp"

namespace vgpu {

/// The block whose thread calls `function`.
inline Block& running_block(const char* function) {
  Block* block = current_block();
  if (block == nullptr) throw std::logic_error(std::string(function) + " is for kernels alone");
  return *block;
}

/// The runtime works for the running thread; afterwards, with a seed, some copy or product may go on.
template <class Action>
auto in_unit(const char* function, Action action) {
  Block& block = running_block(function);
  const Block::RuntimeTurn turn(block, block.current());
  AsyncUnit& unit = AsyncUnit::of(block);
  struct Afterwards {
    ~Afterwards() { unit.maybe_do_one(); }
    AsyncUnit& unit;
  };
  const auto act = [&] {
    const Afterwards afterwards{unit};
    return action(block, unit);
  };
  if constexpr (std::is_void_v<decltype(act())>) {
    act();
    block.leave_if_failed();
  } else {
    const auto result = act();
    block.leave_if_failed();
    return result;
  }
}

}  // namespace vgpu
