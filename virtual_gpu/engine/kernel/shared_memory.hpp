// The shared memory of a block: one arena.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/memory_state.hpp"
#include "engine/kernel/shared_arenas.hpp"

namespace vgpu {

/// Dynamic memory first, then each `__shared__` declaration when a thread first comes to it. The arena begins
/// at a multiple of 1024, so the low bits of an address are those of its offset: swizzles and descriptors
/// depend on them. Everything starts as all ones.
class SharedMemory {
 public:
  static constexpr std::size_t kAlignment =
      shared_arenas::kAlignment;  // as much as any hardware feature asks for

  /// `limit`: of static and dynamic memory together. `usual` is what the declarations of the kernel's blocks
  /// take, as far as earlier blocks have shown it: the arena is made so large.
  SharedMemory(std::size_t dynamic_bytes, std::size_t limit, std::optional<std::size_t>& usual);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* dynamic() const {
    return dynamic_bytes_ == 0 && !memcheck::kEnabled ? nullptr : arenas_.front().arena.memory;
  }
  /// The variables of a declaration, for reports.
  struct Variables {
    const char *names, *file;
    int line;
  };
  /// The storage of that declaration; nullptr if it exceeds the limit.
  void* declared(const void* declaration, std::size_t bytes, std::size_t alignment,
                 const Variables& variables);
  /// Bytes that were asked for so far, refused ones included.
  std::size_t bytes() const { return bytes_; }

  /// The offset of an address, as `__cvta_generic_to_shared` gives it; nothing if the `bytes` bytes there are
  /// no shared memory of this block.
  std::optional<std::uint32_t> offset_of(const void* address, std::size_t bytes) const;
  /// The address in `other` of what is there at `address` in this memory: the same declaration, or the same
  /// place in dynamic memory. nullptr if the address is no shared memory of this block.
  void* same_in(SharedMemory& other, const void* address) const;
  /// "byte 4 of the shared variable 'cells' of block (3,0,0), declared at x.cu:12", where that is the block's
  /// name; "" if the address is no shared memory of this block.
  std::string describe(const void* address, const std::string& block) const;
  /// "12 bytes behind the shared memory of its block", in the check build "... behind its shared variable
  /// 'cells' of 4 bytes, declared at x.cu:12"; "" if the address is not beside it.
  std::string locate(const void* address) const;
  /// When the block ends: "4 bytes behind its dynamic shared memory", if it has written there; "" if it has
  /// written nowhere beside its shared memory.
  std::string describe_overrun() const;
  /// Calls `visit` with all of it: addresses and sizes.
  template <class Visit>
  void each(Visit visit) const {
    for (const Arena& arena : arenas_) visit(arena.arena.memory, arena.used);
  }
  /// The other way round; nullptr if the `bytes` bytes at that offset are no shared memory of this block.
  const std::byte* at(std::size_t offset, std::size_t bytes) const;

 private:
  /// A block has a second one only if it has more declarations than the blocks before it. What is not used is
  /// marked, and the bytes of `arena` behind `bytes`.
  struct Arena {
    shared_arenas::Arena arena;
    std::size_t bytes, offset, used;
  };

  std::byte* take(std::size_t bytes, std::size_t alignment);
  std::string locate_beside_variable(const void* address) const;
  /// `used`: from its beginning.
  void add_arena(std::size_t bytes, std::size_t used = 0);

  std::size_t dynamic_bytes_, limit_, bytes_, declared_end_ = 0;
  std::optional<std::size_t>& usual_;
  std::vector<Arena> arenas_;
  struct Declaration {
    const void* key;
    std::byte* memory;
    std::size_t bytes, alignment;
    Variables variables;
    std::string text() const;   // "shared variable 'cells'"
    std::string place() const;  // ", declared at x.cu:12"
  };
  std::vector<Declaration> declarations_;
};

}  // namespace vgpu
