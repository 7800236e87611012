#include "engine/kernel/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/memory.hpp"

namespace vgpu {
namespace {

constexpr std::byte kMark{0xa5};
// At least so many bytes behind an arena.
constexpr std::size_t kMarked = shared_arenas::kAlignment;
constexpr std::size_t kFirstOffset = 1024;       // as on sm_90: what lies below is the system's
constexpr std::size_t kMaxDeclared = 48 * 1024;  // more needs dynamic memory on real GPUs
constexpr std::size_t kMinDeclaredAlignment = 16;
// Behind each variable: nobody's bytes, where an index error lands.
constexpr std::size_t kGap = memcheck::kEnabled ? 256 : 0;

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

/// The offset of the first byte in [begin, end) that is no mark any more.
std::optional<std::size_t> written_mark(const std::byte* begin, const std::byte* end) {
  const auto bytes = static_cast<std::size_t>(end - begin);
  // All are equal, and the first one is a mark: much faster than one after the other.
  if (bytes == 0 || (*begin == kMark && std::memcmp(begin, begin + 1, bytes - 1) == 0)) return std::nullopt;
  const std::byte* const found = std::find_if_not(begin, end, [](std::byte byte) { return byte == kMark; });
  return static_cast<std::size_t>(found - begin);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t dynamic_bytes, std::size_t limit, std::optional<std::size_t>& usual)
    : dynamic_bytes_(dynamic_bytes), limit_(limit), bytes_(dynamic_bytes), usual_(usual) {
  if (dynamic_bytes == 0 && !memcheck::kEnabled) return;
  const std::size_t rest = limit > dynamic_bytes ? limit - dynamic_bytes : 0;
  const std::size_t used = round_up(dynamic_bytes + kGap, kAlignment);
  add_arena(used + usual.value_or(std::min(rest, kMaxDeclared)), dynamic_bytes);
  std::memset(take(dynamic_bytes, kAlignment), kPoison, dynamic_bytes);
  arenas_.front().used = used;
}

SharedMemory::~SharedMemory() {
  usual_ = std::max(usual_.value_or(0), declared_end_);
  for (const Arena& arena : arenas_) shared_arenas::give_back(arena.arena);
}

void SharedMemory::add_arena(std::size_t bytes, std::size_t used) {
  const std::size_t rounded = round_up(bytes, kAlignment);
  const shared_arenas::Arena arena = shared_arenas::take(rounded + kMarked);
  std::memset(arena.memory + used, static_cast<int>(kMark), arena.bytes - used);
  const std::size_t offset = arenas_.empty() ? kFirstOffset : arenas_.back().offset + arenas_.back().bytes;
  arenas_.push_back({arena, rounded, offset, 0});
}

std::string SharedMemory::locate_beside_variable(const void* address) const {
  constexpr auto kNear = static_cast<std::ptrdiff_t>(shared_arenas::kGuard);
  std::ptrdiff_t nearest = kNear;
  std::string text;
  const auto look = [&](const void* begin, std::size_t bytes, const std::string& variable,
                        const std::string& place = "") {
    const auto offset = static_cast<const std::byte*>(address) - static_cast<const std::byte*>(begin);
    const auto behind = offset - static_cast<std::ptrdiff_t>(bytes);
    const std::ptrdiff_t distance = offset < 0 ? -offset : behind;
    if (distance < 0 || distance >= nearest) return;
    nearest = distance;
    text = std::to_string(distance) + (offset < 0 ? " bytes before the " : " bytes behind the ") + variable +
           " of " + std::to_string(bytes) + " bytes of its block" + place;
  };
  look(dynamic(), dynamic_bytes_, "dynamic shared memory");
  for (const Declaration& each : declarations_) look(each.memory, each.bytes, each.text(), each.place());
  return text;
}

std::string SharedMemory::locate(const void* address) const {
  if (memcheck::kEnabled) return locate_beside_variable(address);
  for (const Arena& arena : arenas_) {
    const std::byte* const begin = arena.arena.memory;
    if (!arena.arena.guarded) continue;
    const auto distance = static_cast<const std::byte*>(address) - begin;
    const auto behind = distance - static_cast<std::ptrdiff_t>(arena.used);
    constexpr auto kNear = static_cast<std::ptrdiff_t>(shared_arenas::kGuard);
    if (distance < 0 && -distance <= kNear)
      return std::to_string(-distance) + " bytes before the shared memory of its block";
    if (behind >= 0 && behind < kNear + static_cast<std::ptrdiff_t>(arena.arena.bytes - arena.used))
      return std::to_string(behind) + " bytes behind the shared memory of its block";
  }
  return {};
}

std::string SharedMemory::describe_overrun() const {
  for (const Arena& arena : arenas_) {
    const std::byte* const begin = arena.arena.memory;
    if (const auto offset = written_mark(begin + arena.used, begin + arena.arena.bytes))
      return std::to_string(*offset) + " bytes behind the last of its shared variables";
  }
  if (dynamic_bytes_ == 0) return {};
  const std::byte* const begin = arenas_.front().arena.memory;
  if (const auto offset = written_mark(begin + dynamic_bytes_, begin + round_up(dynamic_bytes_, kAlignment)))
    return std::to_string(*offset) + " bytes behind its dynamic shared memory";
  return {};
}

std::byte* SharedMemory::take(std::size_t bytes, std::size_t alignment) {
  Arena& arena = arenas_.back();
  const std::size_t begin = round_up(arena.used, alignment);
  if (begin + bytes + kGap > arena.bytes) return nullptr;
  arena.used = begin + bytes + kGap;
  memcheck::set_owner(arena.arena.memory + begin, bytes, memcheck::kBlock);
  return arena.arena.memory + begin;
}

void* SharedMemory::declared(const void* declaration, std::size_t bytes, std::size_t alignment,
                             const Variables& variables) {
  for (const Declaration& known : declarations_) {
    if (known.key == declaration) return known.memory;
  }
  bytes_ += bytes;
  if (bytes_ > limit_) return nullptr;
  const std::size_t aligned = std::max(alignment, kMinDeclaredAlignment);
  std::byte* memory = arenas_.empty() ? nullptr : take(bytes, aligned);
  if (memory == nullptr) {
    add_arena(std::max(bytes + kGap, arenas_.empty() ? usual_.value_or(std::min(limit_, kMaxDeclared)) : 0));
    memory = take(bytes, aligned);
  }
  declared_end_ = round_up(declared_end_, aligned) + bytes + kGap;
  std::memset(memory, kPoison, bytes);
  declarations_.push_back({declaration, memory, bytes, alignment, variables});
  return memory;
}

std::string SharedMemory::Declaration::text() const {
  const bool is_one = std::strchr(variables.names, ',') == nullptr;
  return std::string(is_one ? "shared variable '" : "shared variables '") + variables.names + "'";
}

std::string SharedMemory::Declaration::place() const {
  const std::string file = variables.file;
  return ", declared at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(variables.line);
}

void* SharedMemory::same_in(SharedMemory& other, const void* address) const {
  if (const auto offset = offset_in(dynamic(), dynamic_bytes_, address))
    return static_cast<std::byte*>(other.dynamic()) + *offset;
  for (const Declaration& mine : declarations_) {
    const auto offset = offset_in(mine.memory, mine.bytes, address);
    if (!offset) continue;
    void* memory = other.declared(mine.key, mine.bytes, mine.alignment, mine.variables);
    return memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + *offset;
  }
  return nullptr;
}

std::string SharedMemory::describe(const void* address, const std::string& block) const {
  if (const auto offset = offset_in(dynamic(), dynamic_bytes_, address))
    return "byte " + std::to_string(*offset) + " of the dynamic shared memory of " + block;
  for (const Declaration& mine : declarations_) {
    if (const auto offset = offset_in(mine.memory, mine.bytes, address))
      return "byte " + std::to_string(*offset) + " of the " + mine.text() + " of " + block + mine.place();
  }
  return {};
}

std::optional<std::uint32_t> SharedMemory::offset_of(const void* address, std::size_t bytes) const {
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  for (const Arena& arena : arenas_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(arena.arena.memory);
    if (where >= begin && where - begin + bytes <= arena.bytes)
      return static_cast<std::uint32_t>(where - begin + arena.offset);
  }
  return std::nullopt;
}

const std::byte* SharedMemory::at(std::size_t offset, std::size_t bytes) const {
  for (const Arena& arena : arenas_) {
    if (offset >= arena.offset && offset - arena.offset + bytes <= arena.bytes)
      return arena.arena.memory + (offset - arena.offset);
  }
  return nullptr;
}

}  // namespace vgpu
