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

/// Whole pages between inaccessible ones, filled with ones (NaN, -1), so that reads before the first write
/// and accesses beyond the end show. Of a large allocation only written pages take host memory. Freed memory
/// stays inaccessible: no address is used twice.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// nullptr if the host lacks the memory; with `on_demand` only written pages count. Throws ApiError for too
  /// many allocations.
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
  /// True for addresses of virtual GPUs: live, freed, or between two allocations.
  bool reserves(const void* pointer) const;
  /// Says where an address lies: "12 bytes behind a cudaMalloc of 4096 bytes on GPU 0". For error messages.
  std::string locate(const void* address) const;
  /// "byte 4 of a cudaMalloc of 16 bytes on GPU 0, made at x.cu:7".
  std::string describe(const void* address);

 private:
  std::map<std::uintptr_t, Allocation> table_;  // by begin
};

}  // namespace vgpu
