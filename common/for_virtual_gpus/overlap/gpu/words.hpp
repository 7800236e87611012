// The stand-in of the header of this name: the same names and signatures, on virtual GPUs (a test compares
// them; the rewriter does not see this one, so they have no markup). What they mean stands there, in
// common/overlap/gpu/words.hpp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/atomic>

namespace overlap {

struct alignas(16) Words {
  std::uint32_t word[4];
};

__forceinline__ void store_relaxed(Words* to, const Words& words) {
  for (int i = 0; i < 4; ++i) {
    if (i > 0) vgpu::between_parts();
    const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> word(to->word[i]);
    word.store(words.word[i], cuda::memory_order_relaxed);
  }
}

__forceinline__ Words load_relaxed(const Words* from) {
  Words words;
  for (int i = 0; i < 4; ++i) {
    const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> word(
        const_cast<std::uint32_t&>(from->word[i]));
    words.word[i] = word.load(cuda::memory_order_relaxed);
  }
  return words;
}

}  // namespace overlap
