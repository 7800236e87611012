#include "engine/symbols.hpp"

#include <cstring>
#include <new>

#include "vgpu/symbols.h"

namespace vgpu {
namespace {

std::size_t bytes() { return static_cast<std::size_t>(__stop_vgpu_symbols - __start_vgpu_symbols); }

}  // namespace

std::byte* running_symbols = nullptr;

std::byte* Symbols::of(int device) {
  if (bytes() == 0) return nullptr;
  std::byte*& copy = copies_[device];
  if (copy != nullptr) return copy;
  copy = memory_.allocate(bytes(), MemoryKind::kDevice, device);
  if (copy == nullptr) throw std::bad_alloc();
  memory_.find(copy)->symbols = true;
  std::memcpy(copy, __start_vgpu_symbols, bytes());
  return copy;
}

std::ptrdiff_t Symbols::place_of(const void* variable) {
  const auto* at = static_cast<const std::byte*>(variable);
  return at >= __start_vgpu_symbols && at < __stop_vgpu_symbols ? at - __start_vgpu_symbols : -1;
}

}  // namespace vgpu
