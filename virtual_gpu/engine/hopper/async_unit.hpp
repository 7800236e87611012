// A block's asynchronous units of Hopper; created by the first thread that uses one.
#pragma once

#include <cstdint>
#include <string>

#include "engine/hopper/bulk_copies.hpp"
#include "engine/hopper/mbarrier.hpp"
#include "engine/hopper/named_barriers.hpp"
#include "engine/hopper/register_pool.hpp"
#include "engine/hopper/warpgroups.hpp"
#include "engine/kernel/block.hpp"

namespace vgpu {

class AsyncUnit final : public AsyncWork {
 public:
  explicit AsyncUnit(Block& block)
      : barriers(block), copies(block), products(block), meetings(block), registers(block), block_(block) {}
  /// Makes it if the block has none yet.
  static AsyncUnit& of(Block& block) {
    if (block.async_work() == nullptr) block.give_async_work(std::make_unique<AsyncUnit>(block));
    return static_cast<AsyncUnit&>(*block.async_work());
  }

  Mbarriers barriers;
  BulkCopies copies;
  Warpgroups products;
  NamedBarriers meetings;
  RegisterPool registers;

  /// A bulk load to this block or, with a mask, to the same address and mbarrier of those blocks of its
  /// cluster.
  void load(const BulkRequest& request, const void* mbarrier, std::uint16_t mask = 0);
  void maybe_do_one() {
    copies.maybe_do_one();
    products.maybe_do_one();
  }

  bool do_needed() override;
  bool do_any(bool loads) override;
  bool reaches_others() const override { return copies.reaching_others(); }
  std::string describe() const override {
    return barriers.describe() + products.describe() + meetings.describe() + registers.describe();
  }
  std::string finish() override;

 private:
  BulkCopies::Target target_of(const BulkRequest& request, const void* mbarrier, std::size_t rank);
  std::string describe_reaching() const;

  Block& block_;
};

}  // namespace vgpu
