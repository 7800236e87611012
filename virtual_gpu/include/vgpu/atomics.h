// Atomic functions of CUDA C++. They are relaxed, as CUDA's are: they order nothing else. Each returns the
// old value.
#pragma once

#include <cstring>

#include "types.h"

namespace vgpu {

/// Tells the scheduler that memory changed in a way that another block may be waiting for.
void note_progress();
/// The running CUDA thread has looked at the word at `address` and seen `bits`. Seeing the same many times in
/// a row is a spin-wait: it lets others run.
void note_load(const void* address, std::uint64_t bits);
/// The running CUDA thread has changed the word at `address`.
void note_store(const void* address);
/// Race build: whether the memory order of the atomic access that the program makes is to be left out
/// (VGPU_DROP).
bool order_left_out(const char* name);
/// The running CUDA thread reads the word at `address` with a scope below system, in that line: stops the
/// kernel if another GPU has written the word.
void require_own_word(const void* address, const char* scope, const char* file, int line);

template <class T, class Change>
T atomic_update(T* address, Change change) {
  T seen;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  T wanted = change(seen);
  while (!__atomic_compare_exchange(address, &seen, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    wanted = change(seen);
  }
  // An update that changes nothing is how kernels look at a word or try a lock: nobody gets on by it.
  if (std::memcmp(&seen, &wanted, sizeof(T)) != 0) note_progress();
  return seen;
}

}  // namespace vgpu

#define VGPU_ATOMIC(name, type, expression)                                                \
  inline type name(type* address, type value) {                                            \
    return vgpu::atomic_update(address, [value](type old) -> type { return expression; }); \
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

#define VGPU_ATOMIC_CAS(type)                                                                         \
  inline type atomicCAS(type* address, type compare, type value) {                                    \
    const type seen =                                                                                 \
        vgpu::atomic_update(address, [=](type old) -> type { return old == compare ? value : old; }); \
    if (seen != compare) vgpu::note_load(address, static_cast<unsigned long long>(seen));             \
    return seen;                                                                                      \
  }
VGPU_ATOMIC_CAS(int)
VGPU_ATOMIC_CAS(unsigned int)
VGPU_ATOMIC_CAS(unsigned long long)
#undef VGPU_ATOMIC_CAS
