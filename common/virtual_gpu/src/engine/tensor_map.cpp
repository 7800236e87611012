#include "engine/tensor_map.hpp"

#include <cstring>

namespace vgpu {
namespace {

constexpr std::uint64_t kMagic = 0x766770754d617031;

/// FNV over all bytes of the map before its check.
std::uint64_t check_of(const TensorMap& map) {
  unsigned char bytes[offsetof(TensorMap, check)];
  std::memcpy(bytes, &map, sizeof bytes);
  std::uint64_t hash = 14695981039346656037u;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

}  // namespace

void write_tensor_map(TensorMap map, void* to) {
  map.magic = kMagic;
  map.check = check_of(map);
  std::memcpy(to, &map, sizeof map);
}

bool read_tensor_map(const void* from, TensorMap& map) {
  std::memcpy(static_cast<void*>(&map), from, sizeof map);
  return map.magic == kMagic && map.check == check_of(map);
}

}  // namespace vgpu
