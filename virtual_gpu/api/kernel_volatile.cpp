// Volatile accesses: what programs of the race build call instead of ThreadSanitizer's functions for others.
#include "engine/kernel/block.hpp"

#if VGPU_RACE

namespace {

void access(const void* memory, std::size_t bytes, bool write, const void* caller) {
  if (vgpu::Block* block = vgpu::current_block()) return block->access_volatile(memory, bytes, write, caller);
  vgpu::hb::access_of_host(memory, bytes, write, caller);
}

}  // namespace

#define VGPU_VOLATILE(bytes)                                                                            \
  extern "C" void __tsan_volatile_read##bytes(void*);                                                   \
  extern "C" void __tsan_volatile_write##bytes(void*);                                                  \
  void __tsan_volatile_read##bytes(void* at) { access(at, bytes, false, __builtin_return_address(0)); } \
  void __tsan_volatile_write##bytes(void* at) { access(at, bytes, true, __builtin_return_address(0)); }
VGPU_VOLATILE(1)
VGPU_VOLATILE(2)
VGPU_VOLATILE(4)
VGPU_VOLATILE(8)
VGPU_VOLATILE(16)

#endif
