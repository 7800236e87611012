// What a report says of the run beside the accesses. The engine defines these functions: the race room knows
// nothing of it.
#pragma once

#include <string>

namespace vgpu {

/// The allocation around an address, and the line that made it; "" before the first CUDA call.
std::string describe_memory(const void* address);

/// True if accesses there stand for atomic ones whose scopes do not include each other.
bool are_scopes(const void* address);

/// "schedule time order, hash 7a42e5de413b0806"; "" before the first CUDA call.
std::string describe_schedule();

}  // namespace vgpu
