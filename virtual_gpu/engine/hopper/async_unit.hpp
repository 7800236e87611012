// A block's asynchronous units of Hopper; created by the first thread that uses one.
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

  /// Nothing else in the block can run: does the earliest copy or product that a thread is parked for, if
  /// any.
  bool do_needed(Schedule& schedule);
  /// The same for any that is in flight.
  bool do_any(Schedule& schedule);
  void maybe_do_one() {
    copies.maybe_do_one();
    products.maybe_do_one();
  }
  /// For deadlock reports.
  std::string describe() const {
    return barriers.describe() + products.describe() + meetings.describe() + registers.describe();
  }
  /// The block ends: completes the rest. Returns "" or an error's sentence.
  std::string finish();
};

}  // namespace vgpu
