// Asynchronous copies of one thread, as functions.
#pragma once

#include "vgpu/async_copy.h"

/// Copies 4, 8 or 16 bytes, the last `zfill` of them zeros.
[[gnu::always_inline]] inline void __pipeline_memcpy_async(void* dst_shared, const void* src_global,
                                                           std::size_t size_and_align,
                                                           std::size_t zfill = 0) {
  if ((size_and_align != 4 && size_and_align != 8 && size_and_align != 16) || zfill > size_and_align)
    vgpu::misused_pipeline("__pipeline_memcpy_async() copies 4, 8 or 16 bytes");
  vgpu::require_aligned(dst_shared, src_global, size_and_align, size_and_align);
  vgpu::copy_async(dst_shared, src_global, size_and_align - zfill, zfill);
}
inline void __pipeline_commit() { vgpu::commit_copies(); }
/// Waits for all but the last `prior` commits.
inline void __pipeline_wait_prior(std::size_t prior) {
  vgpu::wait_for_copies(static_cast<unsigned int>(prior));
}
