// The variables of the device (__device__, __constant__): one copy of all of them on each GPU.
#pragma once

#include <cstddef>
#include <map>

#include "engine/memory.hpp"

namespace vgpu {

class Symbols {
 public:
  explicit Symbols(Memory& memory) : memory_(memory) {}
  /// The copy of that GPU, made when it is asked for first; nullptr if the program has no such variables.
  std::byte* of(int device);
  /// Of the program's variable at that address: its place in each copy, -1 if it is none of the device.
  static std::ptrdiff_t place_of(const void* variable);

 private:
  Memory& memory_;
  std::map<int, std::byte*> copies_;
};

}  // namespace vgpu
