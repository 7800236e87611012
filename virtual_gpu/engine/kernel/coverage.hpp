// Counts the basic blocks that instrumented code runs (-fsanitize-coverage=trace-pc) and interrupts threads
// that run very long without a scheduling point, such as a loop that spins on a plain volatile flag.
#pragma once

#include <cstdint>

namespace vgpu {

/// Grows whenever a CUDA thread begins or goes on.
inline std::uint64_t turns = 0;

/// Of basic_blocks(), those of kernels.
inline std::uint64_t kernel_basic_blocks = 0;

/// Basic blocks run so far by the whole program.
std::uint64_t basic_blocks();

}  // namespace vgpu
