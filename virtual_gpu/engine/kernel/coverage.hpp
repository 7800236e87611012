// Counts the basic blocks that instrumented code runs. trace_pc.cpp interrupts threads that run very long
// without a scheduling point, such as a loop that spins on a plain volatile flag.
#pragma once

#include <cstdint>

namespace vgpu {

/// Grows whenever a CUDA thread begins or goes on.
inline std::uint64_t turns = 0;

/// Of basic_blocks(), those of kernels.
inline std::uint64_t kernel_basic_blocks = 0;

/// Basic blocks between two looks at the running thread. Long enough to cost nothing, short enough for spin
/// loops.
inline constexpr std::int64_t kSlice = 100000;

// Of each thread of the operating system: a program may have some that do other work than CUDA's.
inline constinit thread_local std::int64_t left_in_slice = kSlice;
inline constinit thread_local std::uint64_t slices = 0;  // that have ended

/// Basic blocks run so far by the whole program.
inline std::uint64_t basic_blocks() {
  return slices * kSlice + static_cast<std::uint64_t>(kSlice - left_in_slice);
}

}  // namespace vgpu
