#include "engine/kernel/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace vgpu {
namespace {

constexpr int kPoison = 0xff;
constexpr std::size_t kFirstOffset = 1024;       // as on sm_90: what lies below is the system's
constexpr std::size_t kMaxDeclared = 48 * 1024;  // more needs dynamic memory on real GPUs
constexpr std::size_t kMinDeclaredAlignment = 16;

std::size_t round_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Where `address` is in those bytes, if it is there.
std::optional<std::size_t> offset_in(const void* memory, std::size_t bytes, const void* address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  if (memory == nullptr || where < begin || where >= begin + bytes) return std::nullopt;
  return where - begin;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t dynamic_bytes, std::size_t limit, std::optional<std::size_t>& usual)
    : dynamic_bytes_(dynamic_bytes), limit_(limit), bytes_(dynamic_bytes), usual_(usual) {
  if (dynamic_bytes == 0) return;
  const std::size_t rest = limit > dynamic_bytes ? limit - dynamic_bytes : 0;
  add_arena(round_up(dynamic_bytes, kAlignment) + usual.value_or(std::min(rest, kMaxDeclared)));
  std::memset(take(dynamic_bytes, kAlignment), kPoison, dynamic_bytes);
  arenas_.front().used = round_up(dynamic_bytes, kAlignment);
}

void SharedMemory::add_arena(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes, kAlignment);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t offset = arenas_.empty() ? kFirstOffset : arenas_.back().offset + arenas_.back().bytes;
  arenas_.push_back({std::unique_ptr<std::byte, FreeAligned>(memory), rounded, offset, 0});
}

std::byte* SharedMemory::take(std::size_t bytes, std::size_t alignment) {
  Arena& arena = arenas_.back();
  const std::size_t begin = round_up(arena.used, alignment);
  if (begin + bytes > arena.bytes) return nullptr;
  arena.used = begin + bytes;
  return arena.memory.get() + begin;
}

void* SharedMemory::declared(const void* declaration, std::size_t bytes, std::size_t alignment,
                             const char* names) {
  for (const Declaration& known : declarations_) {
    if (known.key == declaration) return known.memory;
  }
  bytes_ += bytes;
  if (bytes_ > limit_) return nullptr;
  const std::size_t aligned = std::max(alignment, kMinDeclaredAlignment);
  std::byte* memory = arenas_.empty() ? nullptr : take(bytes, aligned);
  if (memory == nullptr) {
    add_arena(std::max(bytes, arenas_.empty() ? usual_.value_or(std::min(limit_, kMaxDeclared)) : 0));
    memory = take(bytes, aligned);
  }
  declared_end_ = round_up(declared_end_, aligned) + bytes;
  std::memset(memory, kPoison, bytes);
  declarations_.push_back({declaration, memory, bytes, alignment, names});
  return memory;
}

void* SharedMemory::same_in(SharedMemory& other, const void* address) const {
  if (const auto offset = offset_in(dynamic(), dynamic_bytes_, address))
    return static_cast<std::byte*>(other.dynamic()) + *offset;
  for (const Declaration& mine : declarations_) {
    const auto offset = offset_in(mine.memory, mine.bytes, address);
    if (!offset) continue;
    void* memory = other.declared(mine.key, mine.bytes, mine.alignment, mine.names);
    return memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + *offset;
  }
  return nullptr;
}

std::string SharedMemory::describe(const void* address) const {
  if (const auto offset = offset_in(dynamic(), dynamic_bytes_, address))
    return "byte " + std::to_string(*offset) + " of the dynamic shared memory";
  for (const Declaration& mine : declarations_) {
    if (const auto offset = offset_in(mine.memory, mine.bytes, address))
      return "byte " + std::to_string(*offset) + " of the shared variable" +
             (std::strchr(mine.names, ',') == nullptr ? " '" : "s '") + mine.names + "'";
  }
  return {};
}

std::optional<std::uint32_t> SharedMemory::offset_of(const void* address, std::size_t bytes) const {
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  for (const Arena& arena : arenas_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(arena.memory.get());
    if (where >= begin && where - begin + bytes <= arena.bytes)
      return static_cast<std::uint32_t>(where - begin + arena.offset);
  }
  return std::nullopt;
}

const std::byte* SharedMemory::at(std::size_t offset, std::size_t bytes) const {
  for (const Arena& arena : arenas_) {
    if (offset >= arena.offset && offset - arena.offset + bytes <= arena.bytes)
      return arena.memory.get() + (offset - arena.offset);
  }
  return nullptr;
}

}  // namespace vgpu
