#include "engine/hopper/tensor_map.hpp"

#include <cstring>
#include <functional>

#include "vgpu/sixteen_bit.h"

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

/// to = sum(to, from) for each T of these bytes.
template <class T, class Sum>
void add_each(std::byte* to, const std::byte* from, std::size_t bytes, Sum sum) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T old, addend;
    std::memcpy(&old, to + i, sizeof old);
    std::memcpy(&addend, from + i, sizeof addend);
    old = sum(old, addend);
    std::memcpy(to + i, &old, sizeof old);
  }
}
template <class Format>
std::uint16_t sixteen_bit_sum(std::uint16_t a, std::uint16_t b) {
  return Format::from_float(Format::to_float(a) + Format::to_float(b));  // see SixteenBit's __hadd
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

bool add_elements(TensorElement element, std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (element) {
    case TensorElement::kOther:
      return false;
    case TensorElement::kWord:  // of whole numbers with and without a sign the sum has the same bits
      add_each<std::uint32_t>(to, from, bytes, std::plus<>());
      return true;
    case TensorElement::kLongWord:
      add_each<std::uint64_t>(to, from, bytes, std::plus<>());
      return true;
    case TensorElement::kHalf:
      add_each<std::uint16_t>(to, from, bytes, sixteen_bit_sum<HalfFormat>);
      return true;
    case TensorElement::kBfloat16:
      add_each<std::uint16_t>(to, from, bytes, sixteen_bit_sum<Bfloat16Format>);
      return true;
    case TensorElement::kFloat:
      add_each<float>(to, from, bytes, std::plus<>());
      return true;
  }
  return false;
}

}  // namespace vgpu
