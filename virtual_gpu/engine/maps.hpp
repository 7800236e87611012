// Mappings of memory: Linux gives a process some 65,000 of them, and memory between inaccessible pages takes
// several.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace vgpu {

/// The caller may make so many mappings. False if they would leave too few for all others: malloc, libraries.
bool take_maps(int count);
/// They are gone.
void give_maps_back(int count);
/// How many a process may have: vm.max_map_count.
int map_limit();

/// Inaccessible addresses; MAP_FAILED if there are none. The check build never reuses any.
void* reserve_addresses(std::size_t bytes);
void give_addresses_back(void* begin, std::size_t bytes);

inline std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// `bytes`, rounded up to whole pages.
inline std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_size() - 1) / page_size() * page_size();
}

}  // namespace vgpu
