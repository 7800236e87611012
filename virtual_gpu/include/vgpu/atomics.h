// Atomic functions of CUDA C++, of device, block and system scope. They are relaxed, as CUDA's are: they
// order nothing else. Each returns the old value.
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
/// What a memory order of the compiler's does.
constexpr bool releases(int order) { return order >= __ATOMIC_RELEASE; }
constexpr bool acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }

/// An atomic operation of a kernel.
struct AtomicCall {
  const char* name;  // "load" of atomic_ref, "atomicAdd", "volatile load"
  int order;         // __ATOMIC_RELAXED
  ProgramPlace at;
  const void* caller = nullptr;  // instead of `at`, of a volatile access
  bool takes_order() const { return caller == nullptr && ::std::strncmp(name, "atomic", 6) != 0; }
  bool reads() const { return ::std::strstr(name, "store") == nullptr; }
  bool releases() const { return vgpu::releases(order); }
  bool acquires() const { return vgpu::acquires(order); }
};

/// Tells the scheduler that memory has changed for which another block may wait.
void note_progress();
/// With a seed, other blocks may run before it returns: they see what the running CUDA thread has written so
/// far. Called after each atomic write but that of a compare-and-swap: it may have taken a lock, and if
/// others looked at a lock again and again, ThreadSanitizer would forget what was done under it.
void give_way() noexcept;
/// The running CUDA thread has read `bits` from the word of `bytes` at `address`; a compare-and-swap awaits
/// the value at `awaited`. Many reads of the same value in a row are a spin-wait, which lets others run.
void note_load(const void* address, std::uint64_t bits, unsigned bytes, ProgramPlace at,
               const std::uint64_t* awaited = nullptr);
/// The same, if other functions let others run.
void note_look(const void* address, std::uint64_t bits, ProgramPlace at);
/// Records the operation of the running CUDA thread on the word at `address`, for race reports.
void record_atomic(const void* address, const AtomicCall& call, bool wrote);
inline void note_call([[maybe_unused]] const void* address, [[maybe_unused]] const AtomicCall& call,
                      [[maybe_unused]] bool wrote) {
#ifdef __SANITIZE_THREAD__
  record_atomic(address, call, wrote);
#endif
}

/// The running CUDA thread has changed the word at `address`.
void note_store(const void* address);
/// Race build: whether the memory order of the atomic access that the program makes is to be left out
/// (VGPU_DROP).
bool order_left_out(const char* name);
/// The running CUDA thread reads the word at `address` with a scope below system, in that line: stops the
/// kernel if another GPU has written the word.
void require_own_word(const void* address, const char* scope, const char* file, int line);

/// The running CUDA thread reads the word at `address` and writes it in one access, in that line: stops the
/// kernel if the word is another GPU's, and the link to it has no such access.
void require_native_atomics(const void* address, ProgramPlace at);

/// The scopes as cuda::thread_scope numbers them. That of a thread counts as that of its block.
enum Scope { kSystemScope, kDeviceScope, kBlockScope };
enum Accesses { kReads = 1, kWrites = 2 };

/// For the race detector: scope and order of the next access of the running CUDA thread.
/// There is no branch here, because both builds must run the same number of basic blocks.
void note_atomic(const void* word, int accesses, int order, int scope) noexcept;
/// A fence of the running CUDA thread.
void fence(int scope) noexcept;

[[gnu::always_inline]] inline void before_atomic([[maybe_unused]] const void* word,
                                                 [[maybe_unused]] int accesses, [[maybe_unused]] int order,
                                                 [[maybe_unused]] int scope) {
#ifdef __SANITIZE_THREAD__
  note_atomic(word, accesses, order, scope);
#endif
}
template <class T>
[[gnu::always_inline]] inline void before_exchange([[maybe_unused]] T* word,
                                                   [[maybe_unused]] const T& expected,
                                                   [[maybe_unused]] int order, [[maybe_unused]] int scope) {
#ifdef __SANITIZE_THREAD__
  T now;
  __atomic_load(word, &now, __ATOMIC_RELAXED);
  note_atomic(word, kReads | kWrites * (std::memcmp(&now, &expected, sizeof(T)) == 0), order, scope);
#endif
}

template <class T>
std::uint64_t word_bits(const T& value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <Scope scope, bool compares = false, class T, class Change>
T atomic_update(T* address, const AtomicCall& call, Change change) {
  require_native_atomics(address, call.at);
  T seen, wanted;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  // Kernels read a word or try a lock by an update that changes nothing: it lets no other thread proceed.
  const auto changes = [&] { return std::memcmp(&seen, &wanted, sizeof(T)) != 0; };
  do {
    wanted = change(seen);
    before_atomic(address, kReads | kWrites * changes(), __ATOMIC_RELAXED, scope);
  } while (!__atomic_compare_exchange(address, &seen, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  const bool changed = changes();
  note_call(address, call, changed);
  if (changed) {
    note_progress();
    if (!compares) give_way();
  } else {
    note_look(address, word_bits(seen), call.at);
  }
  return seen;
}

}  // namespace vgpu

#define VGPU_ATOMIC_SCOPE(name, type, scope, expression)                                            \
  inline type name(type* address, type value, vgpu::ProgramPlace at = vgpu::ProgramPlace::here()) { \
    return vgpu::atomic_update<scope>(address, {#name, __ATOMIC_RELAXED, at},                       \
                                      [value](type old) -> type { return expression; });            \
  }
#define VGPU_ATOMIC(name, type, expression)                            \
  VGPU_ATOMIC_SCOPE(name, type, vgpu::kDeviceScope, expression)        \
  VGPU_ATOMIC_SCOPE(name##_block, type, vgpu::kBlockScope, expression) \
  VGPU_ATOMIC_SCOPE(name##_system, type, vgpu::kSystemScope, expression)
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
#undef VGPU_ATOMIC_SCOPE

#define VGPU_ATOMIC_CAS_SCOPE(name, type, scope)                                                          \
  inline type name(type* address, type compare, type value,                                               \
                   vgpu::ProgramPlace at = vgpu::ProgramPlace::here()) {                                  \
    const type seen =                                                                                     \
        vgpu::atomic_update<scope, true>(address, {#name, __ATOMIC_RELAXED, at},                          \
                                         [=](type old) -> type { return old == compare ? value : old; }); \
    const std::uint64_t awaited = vgpu::word_bits(compare);                                               \
    if (seen != compare) vgpu::note_load(address, vgpu::word_bits(seen), sizeof(type), at, &awaited);     \
    return seen;                                                                                          \
  }
#define VGPU_ATOMIC_CAS(type)                                     \
  VGPU_ATOMIC_CAS_SCOPE(atomicCAS, type, vgpu::kDeviceScope)      \
  VGPU_ATOMIC_CAS_SCOPE(atomicCAS_block, type, vgpu::kBlockScope) \
  VGPU_ATOMIC_CAS_SCOPE(atomicCAS_system, type, vgpu::kSystemScope)
VGPU_ATOMIC_CAS(int)
VGPU_ATOMIC_CAS(unsigned int)
VGPU_ATOMIC_CAS(unsigned long long)
#undef VGPU_ATOMIC_CAS
#undef VGPU_ATOMIC_CAS_SCOPE

/// Orders the thread's accesses before the fence before those of another thread after its own fence, if that
/// thread has read, by an atomic or volatile load, a word that this thread writes atomically or volatile
/// after the fence.
inline void __threadfence() { vgpu::fence(vgpu::kDeviceScope); }
inline void __threadfence_block() { vgpu::fence(vgpu::kBlockScope); }
inline void __threadfence_system() { vgpu::fence(vgpu::kSystemScope); }
