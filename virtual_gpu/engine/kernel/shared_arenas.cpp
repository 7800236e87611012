#include "engine/kernel/shared_arenas.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <new>
#include <vector>

#include "engine/maps.hpp"
#include "race/happens_before.hpp"

namespace vgpu::shared_arenas {
namespace {

constexpr int kMaps = 2;  // the memory, and the guard above it; that below is mostly a neighbour's

// Of the mappings stacks need more.
constexpr int kMaxGuarded = 4000;
int guarded_arenas = 0;

// Bytes that are kept at most: grids of many kinds of blocks may have run.
constexpr std::size_t kMaxIdleBytes = std::size_t{64} << 20;
std::size_t idle_bytes = 0;

/// By size. Never destroyed: blocks may end after static objects.
std::map<std::size_t, std::vector<std::byte*>>& idle() {
  static auto& arenas = *new std::map<std::size_t, std::vector<std::byte*>>;
  return arenas;
}

/// `bytes` are whole pages. nullptr if the system has none.
std::byte* make_guarded(std::size_t bytes) {
  if (guarded_arenas >= kMaxGuarded || !take_maps(kMaps)) return nullptr;
  void* base = reserve_addresses(bytes + 2 * kGuard);
  if (base != MAP_FAILED) {
    std::byte* const memory = static_cast<std::byte*>(base) + kGuard;
    if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0) {
      ++guarded_arenas;
      return memory;
    }
    give_addresses_back(base, bytes + 2 * kGuard);
  }
  give_maps_back(kMaps);
  return nullptr;
}

}  // namespace

Arena take(std::size_t bytes) {
  const std::size_t pages = whole_pages(bytes);
  if (!hb::kEnabled) {
    std::vector<std::byte*>& same_size = idle()[pages];
    if (!same_size.empty()) {
      std::byte* const memory = same_size.back();
      same_size.pop_back();
      idle_bytes -= pages;
      return {memory, pages, true};
    }
    if (std::byte* const memory = make_guarded(pages)) return {memory, pages, true};
  }
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, bytes, false};
}

void give_back(const Arena& arena) {
  if (!arena.guarded) return std::free(arena.memory);
  memcheck::set_owner(arena.memory, arena.bytes, memcheck::kNobody);
  if (idle_bytes + arena.bytes > kMaxIdleBytes) {
    give_addresses_back(arena.memory - kGuard, arena.bytes + 2 * kGuard);
    --guarded_arenas;
    return give_maps_back(kMaps);
  }
  idle()[arena.bytes].push_back(arena.memory);
  idle_bytes += arena.bytes;
}

}  // namespace vgpu::shared_arenas
