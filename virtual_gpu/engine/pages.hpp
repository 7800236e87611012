// Pages of the host's memory.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace vgpu {

inline std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// `bytes`, rounded up to whole pages.
inline std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_size() - 1) / page_size() * page_size();
}

}  // namespace vgpu
