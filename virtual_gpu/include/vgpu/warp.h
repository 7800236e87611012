// Warp-level functions. A warp is 32 consecutive threads of a block (x runs fastest). The lanes named in
// `mask` wait for each other. The value of a lane outside the mask, or of one that has returned, is undefined
// in CUDA and all-ones bits here; the race build warns of it.
#pragma once

#include <cstring>
#include <type_traits>

#include "types.h"

namespace vgpu {

/// Waits for all lanes of `mask` and returns their values, valid until the lane's next warp function;
/// `present`: the lanes that took part.
const std::uint64_t* warp_exchange(unsigned int mask, std::uint64_t value, unsigned int* present);
/// Warns: a shuffle of the calling thread reads `lane`, which does not take part in it.
void note_absent_lane(int lane);
/// Index of the calling thread in its warp, 0 to 31.
int lane_index();

template <class T>
T warp_shuffle(unsigned int mask, T value, int source_lane) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a shuffle moves 4 or 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  unsigned int present = 0;
  const std::uint64_t* values = warp_exchange(mask, bits, &present);
  const bool takes_part = (present >> source_lane & 1) != 0;
  bits = takes_part ? values[source_lane] : ~std::uint64_t{0};
  if (!takes_part) note_absent_lane(source_lane);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T, class Combine>
T warp_reduce(unsigned int mask, T value, Combine combine) {
  unsigned int present = 0;
  const std::uint64_t* values = warp_exchange(mask, static_cast<std::uint64_t>(value), &present);
  bool first = true;
  T result{};
  for (int lane = 0; lane < 32; ++lane) {
    if (!(present >> lane & 1)) continue;
    const T other = static_cast<T>(values[lane]);
    result = first ? other : combine(result, other);
    first = false;
  }
  return result;
}

}  // namespace vgpu

void __syncwarp(unsigned int mask = 0xffffffffu);
/// The lanes of `mask` whose value has the same bits as the caller's.
template <class T>
unsigned int __match_any_sync(unsigned int mask, T value) {
  static_assert(sizeof(T) <= 8 && std::is_arithmetic_v<T>, "values of 4 or 8 bytes are compared");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  unsigned int present = 0, equal = 0;
  const std::uint64_t* values = vgpu::warp_exchange(mask, bits, &present);
  for (unsigned int lane = 0; lane < 32; ++lane) {
    if ((present >> lane & 1) != 0 && values[lane] == bits) equal |= 1u << lane;
  }
  return equal;
}
/// `mask` if all its lanes have that value, else 0.
template <class T>
unsigned int __match_all_sync(unsigned int mask, T value, int* predicate) {
  *predicate = (__match_any_sync(mask, value) & mask) == mask;
  return *predicate ? mask : 0;
}
unsigned int __ballot_sync(unsigned int mask, int predicate);
inline int __any_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
int __all_sync(unsigned int mask, int predicate);

template <class T>
T __shfl_sync(unsigned int mask, T value, int source, int width = 32) {
  const int lane = vgpu::lane_index();
  return vgpu::warp_shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
  const int lane = vgpu::lane_index();
  const int source = lane - static_cast<int>(delta);
  return vgpu::warp_shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <class T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
  const int lane = vgpu::lane_index();
  const int source = lane + static_cast<int>(delta);
  return vgpu::warp_shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32) {
  const int lane = vgpu::lane_index();
  const int source = lane ^ lane_mask;
  return vgpu::warp_shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}

#define VGPU_REDUCE(name, type, expression)                                                   \
  inline type name(unsigned int mask, type value) {                                           \
    return vgpu::warp_reduce(mask, value, [](type a, type b) -> type { return expression; }); \
  }
VGPU_REDUCE(__reduce_add_sync, unsigned int, a + b)
VGPU_REDUCE(__reduce_min_sync, unsigned int, b < a ? b : a)
VGPU_REDUCE(__reduce_max_sync, unsigned int, a < b ? b : a)
VGPU_REDUCE(__reduce_min_sync, int, b < a ? b : a)
VGPU_REDUCE(__reduce_max_sync, int, a < b ? b : a)
VGPU_REDUCE(__reduce_and_sync, unsigned int, a& b)
VGPU_REDUCE(__reduce_or_sync, unsigned int, a | b)
VGPU_REDUCE(__reduce_xor_sync, unsigned int, a ^ b)
#undef VGPU_REDUCE
inline int __reduce_add_sync(unsigned int mask, int value) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned int>(value)));
}
