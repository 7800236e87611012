// Asynchronous copies of a CUDA thread (cp.async on real GPUs), on which cuda::pipeline and __pipeline_* are
// built. A thread issues copies, closes groups of them, and waits for its oldest groups. A copy reads its
// source and writes its destination at any time from its issue to the wait that covers it: here at that wait,
// or, with a seed, at a random one. Copies without a wait are done before the block ends.
#pragma once

#include <cstddef>

namespace vgpu {

/// `bytes` bytes from `from`, then `zeros` zeros, as part of the thread's open group.
void copy_async(void* to, const void* from, std::size_t bytes, std::size_t zeros = 0);
/// Closes the open group. An empty group counts too.
void commit_copies();
/// Waits for all but the last `prior` groups that are closed.
void wait_for_copies(unsigned int prior);
/// Stops the kernel unless both addresses and `bytes` are multiples of `alignment`.
void require_aligned(const void* to, const void* from, std::size_t bytes, std::size_t alignment);
/// Stops the kernel: `sentence` says what is wrong with a pipeline.
[[noreturn]] void misused_pipeline(const char* sentence);

}  // namespace vgpu
