// What a block needs for asynchronous work as Hopper has it; made by the first thread that asks for it.
#pragma once

#include "engine/bulk_copies.hpp"
#include "engine/mbarrier.hpp"

namespace vgpu {

struct AsyncUnit {
  explicit AsyncUnit(Block& block) : barriers(block), copies(block, barriers) {}
  Mbarriers barriers;
  BulkCopies copies;
};

}  // namespace vgpu
