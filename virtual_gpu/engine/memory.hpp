// Device memory and pinned host memory, with a table of what is allocated where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "race/happens_before.hpp"
#include "vgpu/control.hpp"

namespace vgpu {

enum class MemoryKind { kDevice, kPinned, kRegistered, kManaged };

struct Allocation {
  std::byte* begin;
  std::size_t bytes;
  MemoryKind kind;
  int device;  // owner, or the current device when pinned memory was made
  bool freed = false;
  bool symbols = false;                 // the variables of the GPU
  hb::CallSite site = hb::call_site();  // who made it
  hb::CallSite freed_by{};
};

/// What memory that nobody has written is filled with, shared memory, too.
inline constexpr int kPoison = 0xff;

/// Memory comes in whole pages between inaccessible ones, filled with ones (a NaN, -1): reading it before
/// writing it shows, and so does leaving it by more than a page. Of a large allocation the host has only the
/// pages that were written: all others are the same few. Freed memory stays inaccessible for ever: no address
/// comes twice.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// Returns nullptr if the host has no such memory. `on_demand`: it need not have all of it. Throws ApiError
  /// if there are too many allocations.
  std::byte* allocate(std::size_t bytes, MemoryKind kind, int device, bool on_demand = false);
  /// Throws std::runtime_error if the system refuses.
  void free(Allocation& allocation);
  /// Enters memory of the program's own as pinned.
  void add_registered(void* begin, std::size_t bytes, int device);
  void remove_registered(const void* begin);

  /// The live allocations of that kind that belong to that GPU.
  std::vector<Allocation*> of(MemoryKind kind, int device);
  /// The live allocation that contains `pointer`, or nullptr: pageable host memory.
  Allocation* find(const void* pointer);
  /// True if the address belongs to the virtual GPUs: live, freed or between two allocations. Then it is no
  /// memory of the program's own.
  bool reserves(const void* pointer) const;
  /// Says where an address lies: "12 bytes behind a cudaMalloc of 4096 bytes on GPU 0". For error messages.
  std::string locate(const void* address) const;
  /// "byte 4 of a cudaMalloc of 16 bytes on GPU 0, made at x.cu:7".
  std::string describe(const void* address);

 private:
  std::map<std::uintptr_t, Allocation> table_;  // by begin
};

}  // namespace vgpu
