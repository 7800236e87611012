// Tensor maps: the contents of the 128 opaque bytes of a CUtensorMap, and the addresses of a box.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace vgpu {

/// The type of the elements, as far as reductions need it.
enum class TensorElement : std::uint8_t { kOther, kWord, kLongWord, kHalf, kBfloat16, kFloat };

/// A tensor of up to five dimensions, the innermost first, and the box that one copy moves.
struct TensorMap {
  static constexpr int kMaxDimensions = 5;

  std::uint64_t magic;
  std::byte* address;
  std::uint64_t strides[kMaxDimensions - 1];  // bytes, of all dimensions but the first
  std::uint32_t last[kMaxDimensions];         // the highest index: a size may be 2^32
  std::uint16_t box[kMaxDimensions];          // elements
  std::uint8_t rank, element_bytes;
  std::uint8_t swizzle_bytes;  // the span within which 16-byte chunks change places; 0: none
  TensorElement element;
  std::uint64_t check;  // of all that stands before it

  std::size_t row_bytes() const { return std::size_t{box[0]} * element_bytes; }
  std::size_t rows() const {
    std::size_t count = 1;
    for (int d = 1; d < rank; ++d) count *= box[d];
    return count;
  }
  std::size_t box_bytes() const { return rows() * row_bytes(); }
};
static_assert(sizeof(TensorMap) <= 128 && std::is_trivially_copyable_v<TensorMap>);

/// Completes `map` so that read_tensor_map() knows it, and writes it to the 128 bytes at `to`.
void write_tensor_map(TensorMap map, void* to);
/// False if the 128 bytes at `from` are no tensor map.
bool read_tensor_map(const void* from, TensorMap& map);

/// Adds elements to those at `to`, of any alignment; 16-bit sums are rounded to nearest even. Does nothing
/// and returns false if the type cannot be added.
bool add_elements(TensorElement element, std::byte* to, const std::byte* from, std::size_t bytes);

/// The swizzled address of the 16-byte chunk at `address`. Shared memory begins at a multiple of 1024.
inline std::byte* swizzled(std::byte* address, int swizzle_bytes) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t chunks = swizzle_bytes / 16;  // 0, 2, 4 or 8
  return chunks == 0
             ? address
             : address + static_cast<std::ptrdiff_t>((bits ^ ((bits >> 7 & (chunks - 1)) << 4)) - bits);
}

/// Calls visit(global address, offset in the box, bytes) for the part inside the tensor of each row of the
/// box.
template <class Visit>
void for_each_row(const TensorMap& map, const std::int32_t* at, Visit visit) {
  const std::int64_t size = std::int64_t{map.last[0]} + 1;
  const std::int64_t begin = std::max<std::int64_t>(0, -std::int64_t{at[0]});
  const std::int64_t end = std::min<std::int64_t>(map.box[0], size - at[0]);
  if (begin >= end) return;
  for (std::size_t row = 0; row < map.rows(); ++row) {
    std::byte* address = map.address + (at[0] + begin) * map.element_bytes;
    std::size_t rest = row;
    bool inside = true;
    for (int d = 1; d < map.rank; ++d) {
      const std::int64_t index = at[d] + static_cast<std::int64_t>(rest % map.box[d]);
      rest /= map.box[d];
      inside = inside && index >= 0 && index <= std::int64_t{map.last[d]};
      address += index * static_cast<std::int64_t>(map.strides[d - 1]);
    }
    if (inside) {
      visit(address, row * map.row_bytes() + static_cast<std::size_t>(begin) * map.element_bytes,
            static_cast<std::size_t>(end - begin) * map.element_bytes);
    }
  }
}

}  // namespace vgpu
