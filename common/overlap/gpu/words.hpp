// Loads and stores of 16 bytes that other GPUs may see in parts, but whose 32-bit words they see whole. Each
// word is a relaxed atomic access of its own at system scope; one instruction makes all four. <cuda/atomic>
// has no such access (its largest on compute capability 8.0 are 8 bytes), so this is inline PTX.
// Virtual GPUs have a header of this name of their own; with a seed, others run between the words of a store.
// Source: PTX ISA, "ld", "st" (.relaxed.sys, .v4) and "Memory Consistency Model": a vector access is a set of
// scalar ones in no order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace overlap {

/// 16 bytes of memory.
struct alignas(16) Words {
  std::uint32_t word[4];
};

/// Stores all four words, each relaxed at system scope, in no order.
__device__ __forceinline__ void store_relaxed(Words* to, const Words& words) {
  asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(words.word[0]), "r"(words.word[1]),
                 "r"(words.word[2]), "r"(words.word[3])
               : "memory");
}

/// Loads all four words, each relaxed at system scope, in no order.
__device__ __forceinline__ Words load_relaxed(const Words* from) {
  Words words;
  asm volatile("ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return words;
}

}  // namespace overlap
