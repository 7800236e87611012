// Atomic functions of CUDA C++. They are relaxed, as CUDA's are: they order nothing else. Each returns the
// old value.
#pragma once

#include <cstdint>
#include <cstring>

#include "types.h"

namespace vgpu {

/// Where a function was called, as its last argument's default.
struct ProgramPlace {
  const char* file = nullptr;
  int line = 0;
  static constexpr ProgramPlace here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};
/// An atomic operation of a kernel.
struct AtomicCall {
  const char* name;  // "load" of atomic_ref, "atomicAdd"
  int order;         // __ATOMIC_RELAXED
  ProgramPlace at;
  bool takes_order() const { return ::std::strncmp(name, "atomic", 6) != 0; }
  bool reads() const { return ::std::strcmp(name, "store") != 0; }
  bool releases() const { return order >= __ATOMIC_RELEASE; }
  bool acquires() const { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }
};

/// Tells the scheduler that memory changed in a way that another block may be waiting for.
void note_progress();
/// The running CUDA thread has looked at the word at `address` and seen `bits`; a compare-and-swap awaits
/// what `awaited` points to. Seeing the same many times in a row is a spin-wait: it lets others run.
void note_load(const void* address, std::uint64_t bits, ProgramPlace at,
               const std::uint64_t* awaited = nullptr);
/// The same, if other functions let others run.
void note_look(const void* address, std::uint64_t bits, ProgramPlace at);
/// The running CUDA thread has done that with the word at `address`. For reports of races.
void record_atomic(const void* address, const AtomicCall& call, bool wrote);
inline void note_call([[maybe_unused]] const void* address, [[maybe_unused]] const AtomicCall& call,
                      [[maybe_unused]] bool wrote) {
#ifdef __SANITIZE_THREAD__
  record_atomic(address, call, wrote);
#endif
}

/// The running CUDA thread has changed the word at `address`.
void note_store(const void* address);
/// The running CUDA thread reads the word at `address` with a scope below system, in that line: stops the
/// kernel if another GPU has written the word.
void require_own_word(const void* address, const char* scope, const char* file, int line);

template <class T>
std::uint64_t word_bits(const T& value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T, class Change>
T atomic_update(T* address, const AtomicCall& call, Change change) {
  T seen;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  T wanted = change(seen);
  while (!__atomic_compare_exchange(address, &seen, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    wanted = change(seen);
  }
  // An update that changes nothing is how kernels look at a word or try a lock: nobody gets on by it.
  const bool changed = std::memcmp(&seen, &wanted, sizeof(T)) != 0;
  note_call(address, call, changed);
  if (changed) {
    note_progress();
  } else {
    note_look(address, word_bits(seen), call.at);
  }
  return seen;
}

}  // namespace vgpu

#define VGPU_ATOMIC(name, type, expression)                                                         \
  inline type name(type* address, type value, vgpu::ProgramPlace at = vgpu::ProgramPlace::here()) { \
    return vgpu::atomic_update(address, {#name, __ATOMIC_RELAXED, at},                              \
                               [value](type old) -> type { return expression; });                   \
  }
#define VGPU_ATOMIC_INTEGER(name, expression) \
  VGPU_ATOMIC(name, int, expression)          \
  VGPU_ATOMIC(name, unsigned int, expression) \
  VGPU_ATOMIC(name, unsigned long long, expression)

VGPU_ATOMIC_INTEGER(atomicAdd, old + value)
VGPU_ATOMIC(atomicAdd, float, old + value)
VGPU_ATOMIC(atomicAdd, double, old + value)
VGPU_ATOMIC(atomicSub, int, old - value)
VGPU_ATOMIC(atomicSub, unsigned int, old - value)
VGPU_ATOMIC_INTEGER(atomicExch, ((void)old, value))
VGPU_ATOMIC(atomicExch, float, ((void)old, value))
VGPU_ATOMIC_INTEGER(atomicMin, value < old ? value : old)
VGPU_ATOMIC_INTEGER(atomicMax, old < value ? value : old)
VGPU_ATOMIC_INTEGER(atomicAnd, old& value)
VGPU_ATOMIC_INTEGER(atomicOr, old | value)
VGPU_ATOMIC_INTEGER(atomicXor, old ^ value)
VGPU_ATOMIC(atomicInc, unsigned int, old >= value ? 0 : old + 1)
VGPU_ATOMIC(atomicDec, unsigned int, (old == 0 || old > value) ? value : old - 1)
#undef VGPU_ATOMIC_INTEGER
#undef VGPU_ATOMIC

#define VGPU_ATOMIC_CAS(type)                                                                              \
  inline type atomicCAS(type* address, type compare, type value,                                           \
                        vgpu::ProgramPlace at = vgpu::ProgramPlace::here()) {                              \
    const type seen = vgpu::atomic_update(address, {"atomicCAS", __ATOMIC_RELAXED, at},                    \
                                          [=](type old) -> type { return old == compare ? value : old; }); \
    const std::uint64_t awaited = vgpu::word_bits(compare);                                                \
    if (seen != compare) vgpu::note_load(address, static_cast<unsigned long long>(seen), at, &awaited);    \
    return seen;                                                                                           \
  }
VGPU_ATOMIC_CAS(int)
VGPU_ATOMIC_CAS(unsigned int)
VGPU_ATOMIC_CAS(unsigned long long)
#undef VGPU_ATOMIC_CAS
