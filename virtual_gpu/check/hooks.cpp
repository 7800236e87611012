// What programs of the check build call before each access, instead of ThreadSanitizer: the compiler's
// interface is that of -fsanitize=thread. And memcpy, memmove and memset, which the linker leads here
// (--wrap).
#include "check/memory_state.hpp"

#if VGPU_CHECK

#include <cstring>

#include "check/report.hpp"
#include "check/shadow.hpp"

namespace vgpu::memcheck {
namespace {

// kCopyTo: a write that leaves to the caller which bytes count as written.
enum Way { kCopyFrom = 0, kRead = 1, kWrite = 2, kUpdate = kRead | kWrite, kCopyTo = 4 };

/// Reports a forbidden access. A read counts as unwritten only if none of its bytes was written, because
/// padding of copied structures never is.
[[gnu::noinline]] void look_closely(const void* memory, std::size_t bytes, int way, const void* caller) {
  Rights* const rights = running();
  State* const first = states(memory);
  if (first == nullptr || rights == in_runtime() || bytes == 0) return;
  State seen = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const Owner owner = owner_of(first[i]);
    if (!rights->allows[owner]) {
      const Fault fault = owner == kNobody ? Fault::kOutside : Fault::kForeign;
      report({memory, bytes, static_cast<const std::byte*>(memory) + i, (way & (kWrite | kCopyTo)) != 0,
              fault, caller});
    }
    seen |= first[i];
  }
  if ((way & kRead) != 0 && (seen & kWritten) == 0 && !rights->reads_unwritten)
    report({memory, bytes, memory, false, Fault::kUnwritten, caller});
  if ((way & kWrite) != 0) {
    for (std::size_t i = 0; i < bytes; ++i) first[i] |= kWritten;
  }
}

template <class Bits>
[[gnu::always_inline]] inline void look(const void* memory, int way, const void* caller) {
  const State* const first = states(memory);
  if (first == nullptr) [[likely]]
    return;
  // Mostly all bytes were written, and are of one owner.
  Bits bits;
  std::memcpy(&bits, first, sizeof bits);
  const State state = *first;
  const Bits equal = static_cast<Bits>(static_cast<Bits>(~Bits{0}) / 0xff * state);
  if (bits == equal && (state & kWritten) != 0 && running()->allows[owner_of(state)]) [[likely]]
    return;
  look_closely(memory, sizeof bits, way, caller);
}

/// A copy carries what was written. It reads only if it leaves the memory of the virtual GPUs.
void look_at_copy(const void* to, const void* from, std::size_t bytes, const void* caller) {
  State* const target = states(to);
  const State* const source = states(from);
  if (target == nullptr && source == nullptr) return;
  look_closely(from, bytes, target == nullptr ? kRead : kCopyFrom, caller);
  look_closely(to, bytes, source == nullptr ? kWrite : kCopyTo, caller);
  if (target == nullptr || source == nullptr) return;
  const auto carry = [=](std::size_t i) { target[i] = state_of(owner_of(target[i]), source[i] & kWritten); };
  if (target < source) {
    for (std::size_t i = 0; i < bytes; ++i) carry(i);
  } else {
    for (std::size_t i = bytes; i-- > 0;) carry(i);
  }
}

}  // namespace

#define VGPU_CALLER __builtin_return_address(0)
#define VGPU_ACCESS(name, bytes, bits, way)                                                 \
  extern "C" void __tsan_##name##bytes(const void*);                                        \
  extern "C" void __tsan_unaligned_##name##bytes(const void*);                              \
  extern "C" void __tsan_volatile_##name##bytes(const void*);                               \
  void __tsan_##name##bytes(const void* at) { look<bits>(at, way, VGPU_CALLER); }           \
  void __tsan_unaligned_##name##bytes(const void* at) { look<bits>(at, way, VGPU_CALLER); } \
  void __tsan_volatile_##name##bytes(const void* at) { look<bits>(at, way, VGPU_CALLER); }
#define VGPU_ACCESSES(bytes, bits)      \
  VGPU_ACCESS(read, bytes, bits, kRead) \
  VGPU_ACCESS(write, bytes, bits, kWrite)
VGPU_ACCESSES(1, std::uint8_t)
VGPU_ACCESSES(2, std::uint16_t)
VGPU_ACCESSES(4, std::uint32_t)
VGPU_ACCESSES(8, std::uint64_t)
VGPU_ACCESSES(16, unsigned __int128)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** at, void*) { look<std::uint64_t>(at, kWrite, VGPU_CALLER); }
void __tsan_vptr_read(void** at) { look<std::uint64_t>(at, kRead, VGPU_CALLER); }
void __tsan_read_range(const void* at, std::size_t bytes) { look_closely(at, bytes, kRead, VGPU_CALLER); }
void __tsan_write_range(const void* at, std::size_t bytes) { look_closely(at, bytes, kWrite, VGPU_CALLER); }
void __tsan_atomic_thread_fence(int order) { __atomic_thread_fence(order); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
}

// The orders are constants of the program, which are not known here: the strongest does.
#define VGPU_CHANGE(size, bits, name)                                     \
  bits __tsan_atomic##size##_##name(volatile bits* at, bits value, int) { \
    look<bits>(const_cast<bits*>(at), kUpdate, VGPU_CALLER);              \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                  \
  }
#define VGPU_COMPARE(size, bits, name)                                                                   \
  bool __tsan_atomic##size##_compare_exchange_##name(volatile bits* at, bits* expected, bits value, int, \
                                                     int) {                                              \
    look<bits>(const_cast<bits*>(at), kUpdate, VGPU_CALLER);                                             \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }
#define VGPU_ATOMIC_CALLS(size, bits)                                       \
  extern "C" {                                                              \
  bits __tsan_atomic##size##_load(const volatile bits* at, int) {           \
    look<bits>(const_cast<const bits*>(at), kRead, VGPU_CALLER);            \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                           \
  }                                                                         \
  void __tsan_atomic##size##_store(volatile bits* at, bits value, int) {    \
    look<bits>(const_cast<bits*>(at), kWrite, VGPU_CALLER);                 \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                          \
  }                                                                         \
  bits __tsan_atomic##size##_exchange(volatile bits* at, bits value, int) { \
    look<bits>(const_cast<bits*>(at), kWrite, VGPU_CALLER);                 \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                \
  }                                                                         \
  VGPU_CHANGE(size, bits, fetch_add)                                        \
  VGPU_CHANGE(size, bits, fetch_sub)                                        \
  VGPU_CHANGE(size, bits, fetch_and)                                        \
  VGPU_CHANGE(size, bits, fetch_or)                                         \
  VGPU_CHANGE(size, bits, fetch_xor)                                        \
  VGPU_CHANGE(size, bits, fetch_nand)                                       \
  VGPU_COMPARE(size, bits, strong)                                          \
  VGPU_COMPARE(size, bits, weak)                                            \
  }
VGPU_ATOMIC_CALLS(8, std::uint8_t)
VGPU_ATOMIC_CALLS(16, std::uint16_t)
VGPU_ATOMIC_CALLS(32, std::uint32_t)
VGPU_ATOMIC_CALLS(64, std::uint64_t)

extern "C" {
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __real_memset(void* to, int value, std::size_t bytes);

void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  look_at_copy(to, from, bytes, VGPU_CALLER);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  look_at_copy(to, from, bytes, VGPU_CALLER);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  look_closely(to, bytes, kWrite, VGPU_CALLER);
  return __real_memset(to, value, bytes);
}
}

}  // namespace vgpu::memcheck

#endif
