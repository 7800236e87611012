#include "engine/maps.hpp"

#include <sys/mman.h>

#include <fstream>

#include "race/happens_before.hpp"

namespace vgpu {
namespace {

constexpr int kUsualLimit = 65530;
// For all others: malloc makes one for each large piece, and so do libraries.
constexpr int kLeftToOthers = 8000;
// ThreadSanitizer maps its shadow, too.
constexpr int kMapsEach = hb::kEnabled ? 2 : 1;

int taken = 0;

}  // namespace

int map_limit() {
  static const int limit = [] {
    std::ifstream file("/proc/sys/vm/max_map_count");
    int read = 0;
    return file >> read ? read : kUsualLimit;
  }();
  return limit;
}

bool take_maps(int count) {
  if (taken + count * kMapsEach > map_limit() - kLeftToOthers) return false;
  taken += count * kMapsEach;
  return true;
}

void give_maps_back(int count) { taken -= count * kMapsEach; }

void* reserve_addresses(std::size_t bytes) {
  if constexpr (!memcheck::kEnabled)
    return mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* const begin = memcheck::reserve(bytes);
  return begin == nullptr ? MAP_FAILED : begin;
}

void give_addresses_back(void* begin, std::size_t bytes) {
  if constexpr (memcheck::kEnabled) {
    mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else {
    munmap(begin, bytes);
  }
}

}  // namespace vgpu
