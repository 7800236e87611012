// Memory for the shared memory of blocks.
#pragma once

#include <cstddef>

namespace vgpu::shared_arenas {

/// Inaccessible bytes on both sides of an arena, if it is guarded.
inline constexpr std::size_t kGuard = 64 * 1024;
/// An arena's address is a multiple of it, and so is its size.
inline constexpr std::size_t kAlignment = 1024;

/// What take() has found.
struct Arena {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  bool guarded = false;
};

/// Memory of at least that size, directly between its guards. Without guards in the race build, where memory
/// that is used again would bring ThreadSanitizer old accesses, and beyond some thousand blocks.
/// Throws std::bad_alloc.
Arena take(std::size_t bytes);
/// It is kept for the next take() of that size, unless there are many.
void give_back(const Arena& arena);

}  // namespace vgpu::shared_arenas
