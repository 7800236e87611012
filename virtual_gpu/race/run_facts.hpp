// What a report says of the run beside the accesses. The engine defines these functions: the race room knows
// nothing of it.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

/// The memory around an address: the allocation and the line that made it, or the shared variable; "" before
/// the first CUDA call.
std::string describe_memory(const void* address);

/// True if accesses there stand for atomic ones whose scopes do not include each other.
bool are_scopes(const void* address);

/// "schedule time order, hash 7a42e5de413b0806"; "" before the first CUDA call.
std::string describe_schedule();

/// A CUDA thread, out of the number that hb::push_thread() got.
struct KernelThread {
  std::string text;                    // "block (1,0,0), thread (5,0,0)"
  std::uint64_t cluster, block, warp;  // which one of the grid; the warp: of the block
};
KernelThread kernel_thread(std::uint64_t number);

/// If the thread is of the running block and its last wait for an mbarrier returned at once: a sentence that
/// says why; else "".
std::string describe_passed_wait(std::uint64_t thread);

/// If the running thread, `reader`, has last seen a word that the block of `writer` changed, and release or
/// acquire was missing there: a sentence that says where; else "".
std::string describe_handover(std::uint64_t writer, std::uint64_t reader);

/// True if a kernel has accessed that word as volatile.
bool was_volatile(const void* word);

}  // namespace vgpu
