// What a block needs for asynchronous work as Hopper has it; made by the first thread that asks for it.
#pragma once

#include "engine/hopper/bulk_copies.hpp"
#include "engine/hopper/mbarrier.hpp"
#include "engine/hopper/named_barriers.hpp"
#include "engine/hopper/register_pool.hpp"
#include "engine/hopper/warpgroups.hpp"

namespace vgpu {

struct AsyncUnit {
  explicit AsyncUnit(Block& block)
      : barriers(block), copies(block, barriers), products(block), meetings(block), registers(block) {}

  Mbarriers barriers;
  BulkCopies copies;
  Warpgroups products;
  NamedBarriers meetings;
  RegisterPool registers;

  /// Nothing else in the block can run: does the copy or product that a thread is parked for, the one that
  /// is done first if there are both. False if there is none.
  bool do_needed(Scheduler& scheduler);
  /// The same for any that is under way.
  bool do_any(Scheduler& scheduler);
  /// With a seed: maybe does some.
  void maybe_do_one() {
    copies.maybe_do_one();
    products.maybe_do_one();
  }
  /// Deadlock reports: who waits for what.
  std::string describe() const {
    return barriers.describe() + products.describe() + meetings.describe() + registers.describe();
  }
  /// Does what is left when the block ends. Returns "" or what is wrong with that.
  std::string finish();
};

}  // namespace vgpu
