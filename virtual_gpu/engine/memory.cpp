#include "engine/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "engine/host/api_error.hpp"
#include "engine/maps.hpp"

namespace vgpu {
namespace {

// Guard below and above an allocation, large enough for an index error of a few rows. Behind it lies
// ThreadSanitizer's memory, where a wild write goes unnoticed.
constexpr std::size_t kGuard = hb::kEnabled ? 64 << 20 : 64 << 10;
// Up to this distance an address is reported as beside an allocation. The check build sees also accesses with
// a negative index in an unsigned type of 32 bits.
constexpr std::size_t kNear = memcheck::kEnabled ? std::size_t{1} << 36 : kGuard;
constexpr std::size_t kAlignment = 256;  // what cudaMalloc promises

std::size_t physical_memory() { return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size(); }

// From this size on memory is filled by mapping poisoned pages into it: large ones, because a process has few
// mappings (maps.hpp).
constexpr std::size_t kPoisonedPiece = 32 * 1024 * 1024;
/// The pages, the guard above them (that below is the neighbour's), and each poisoned piece.
int maps_of(std::size_t bytes) { return static_cast<int>(2 + bytes / kPoisonedPiece); }

/// A file in memory of kPoisonedPiece poisoned bytes, made once; -1 if the system has none.
int poisoned_piece() {
  static const int file = [] {
    const int made = memfd_create("poisoned device memory", MFD_CLOEXEC);
    const std::vector<char> poison(kPoisonedPiece, static_cast<char>(kPoison));
    if (made < 0 || write(made, poison.data(), poison.size()) == static_cast<ssize_t>(poison.size()))
      return made;
    close(made);
    return -1;
  }();
  return file;
}

/// Fills [begin, begin + bytes), whole pages, with poison. Returns false if the system refuses.
bool poison(std::byte* begin, std::size_t bytes) {
  // The same piece again and again. It is private: who writes to a page gets a copy of it.
  for (; bytes >= kPoisonedPiece && poisoned_piece() >= 0; bytes -= kPoisonedPiece, begin += kPoisonedPiece) {
    if (mmap(begin, kPoisonedPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
             poisoned_piece(), 0) == MAP_FAILED)
      return false;
  }
  std::memset(begin, kPoison, bytes);
  return true;
}

/// The memory ends as near to the guard above it as the alignment allows.
std::size_t lead(std::size_t bytes) {
  return whole_pages(bytes) - (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::string kind_of(const Allocation& allocation) {
  const std::string size = std::to_string(allocation.bytes) + " bytes";
  switch (allocation.kind) {
    case MemoryKind::kDevice:
      return (allocation.symbols ? "the variables of the device, " : "a cudaMalloc of ") + size + " on GPU " +
             std::to_string(allocation.device);
    case MemoryKind::kManaged:
      return "managed memory of " + size;
    case MemoryKind::kPinned:
      return "pinned host memory of " + size;
    case MemoryKind::kRegistered:
      return "registered host memory of " + size;
  }
  return {};
}

/// The same with the lines that made it and freed it, where they are known.
std::string origin(const Allocation& allocation) {
  const std::string made = hb::describe(allocation.site), freed = hb::describe(allocation.freed_by);
  return kind_of(allocation) + (made.empty() ? "" : ", made at " + made) +
         (freed.empty() ? "" : ", freed at " + freed);
}

}  // namespace

Memory::~Memory() {
  for (auto& [address, allocation] : table_) {
    if (allocation.kind == MemoryKind::kRegistered) continue;
    const std::size_t mapped = whole_pages(allocation.bytes) + 2 * kGuard;
    if (!allocation.freed) give_maps_back(maps_of(allocation.bytes));
    give_addresses_back(allocation.begin - lead(allocation.bytes) - kGuard, mapped);
  }
}

std::byte* Memory::allocate(std::size_t bytes, MemoryKind kind, int device, bool on_demand) {
  // The system would promise more than it has, and end the program when it is touched.
  if (bytes > physical_memory() && !on_demand) return nullptr;
  if (!take_maps(maps_of(bytes))) {
    throw ApiError(
        cudaErrorMemoryAllocation,
        "the program has so many allocations, each between guard pages, that Linux has too few mappings "
        "for another one: vm.max_map_count is " +
            std::to_string(map_limit()));
  }
  const std::size_t mapped = whole_pages(bytes) + 2 * kGuard;
  void* base = reserve_addresses(mapped);
  if (base == MAP_FAILED) {
    give_maps_back(maps_of(bytes));
    return nullptr;
  }
  auto* pages = static_cast<std::byte*>(base) + kGuard;
  if (mprotect(pages, whole_pages(bytes), PROT_READ | PROT_WRITE) != 0 ||
      !poison(pages, whole_pages(bytes))) {
    give_addresses_back(base, mapped);
    give_maps_back(maps_of(bytes));
    return nullptr;
  }
  std::byte* begin = pages + lead(bytes);
  table_.emplace(reinterpret_cast<std::uintptr_t>(begin), Allocation{begin, bytes, kind, device});
  // The host may write pinned and managed memory in code that is not instrumented, such as the C library's.
  const bool of_host = kind != MemoryKind::kDevice;
  memcheck::set_owner(begin, bytes, of_host ? memcheck::kHost : memcheck::owner_gpu(device), of_host);
  return begin;
}

void Memory::free(Allocation& allocation) {
  std::byte* const pages = allocation.begin - lead(allocation.bytes);
  const std::size_t bytes = whole_pages(allocation.bytes);
  // A fresh inaccessible mapping over the old one: gives the pages back and keeps the address range. If the
  // program has all mappings that there are, the old one becomes inaccessible.
  if (mmap(pages, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
          MAP_FAILED &&
      (mprotect(pages, bytes, PROT_NONE) != 0 || madvise(pages, bytes, MADV_DONTNEED) != 0)) {
    throw std::runtime_error("the host cannot take the memory back");
  }
  give_maps_back(maps_of(allocation.bytes));
  memcheck::set_owner(allocation.begin, allocation.bytes, memcheck::kNobody);
  allocation.freed = true;
  allocation.freed_by = hb::call_site();
}

void Memory::add_registered(void* begin, std::size_t bytes, int device) {
  auto* first = static_cast<std::byte*>(begin);
  table_[reinterpret_cast<std::uintptr_t>(begin)] = Allocation{first, bytes, MemoryKind::kRegistered, device};
}

void Memory::remove_registered(const void* begin) { table_.erase(reinterpret_cast<std::uintptr_t>(begin)); }

std::vector<Allocation*> Memory::of(MemoryKind kind, int device) {
  std::vector<Allocation*> found;
  for (auto& [begin, allocation] : table_) {
    if (allocation.kind == kind && allocation.device == device && !allocation.freed && !allocation.symbols)
      found.push_back(&allocation);
  }
  return found;
}

Allocation* Memory::find(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto next = table_.upper_bound(address);
  if (next == table_.begin()) return nullptr;
  Allocation& allocation = std::prev(next)->second;
  const bool inside = address - reinterpret_cast<std::uintptr_t>(allocation.begin) < allocation.bytes;
  return inside && !allocation.freed ? &allocation : nullptr;
}

bool Memory::reserves(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto holds = [address](const Allocation& allocation) {
    if (allocation.kind == MemoryKind::kRegistered) return false;
    const auto first = reinterpret_cast<std::uintptr_t>(allocation.begin) - lead(allocation.bytes) - kGuard;
    return address - first < whole_pages(allocation.bytes) + 2 * kGuard;
  };
  const auto next = table_.upper_bound(address);
  return (next != table_.end() && holds(next->second)) ||
         (next != table_.begin() && holds(std::prev(next)->second));
}

std::string Memory::describe(const void* address) {
  const Allocation* allocation = find(address);
  if (allocation == nullptr) return "memory that CUDA did not allocate";
  const std::string inside = "inside ";
  return "byte " + std::to_string(static_cast<const std::byte*>(address) - allocation->begin) + " of " +
         locate(address).substr(inside.size());
}

std::string Memory::locate(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto next = table_.upper_bound(address);
  const std::uintptr_t before = next == table_.end() ? UINTPTR_MAX : next->first - address;
  if (next != table_.begin()) {
    const Allocation& below = std::prev(next)->second;
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(below.begin);
    if (offset < below.bytes) return (below.freed ? "inside freed memory, " : "inside ") + origin(below);
    if (offset < whole_pages(below.bytes) + kNear && offset - below.bytes < before)
      return std::to_string(offset - below.bytes) + " bytes behind " + origin(below);
  }
  if (before <= kNear) return std::to_string(before) + " bytes before " + origin(next->second);
  return "in no memory that the virtual GPUs know";
}

}  // namespace vgpu
