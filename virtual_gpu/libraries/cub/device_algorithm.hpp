// An algorithm of CUB as an operation of a stream.
#pragma once

#include "libraries/library_work.hpp"
#include "vgpu/device_algorithm.h"

namespace vgpu {

/// Modelled time: its bytes at the memory's rate, and the launches of the real kernels. Real algorithms read
/// their inputs at many times. So half of the items are read when the first tile begins, the other half when
/// the last one ends, and all results are written then: a start before the inputs are ready, a change of
/// inputs or temporary storage meanwhile, or an early read gives wrong results, also in time order.
class AlgorithmOperation final : public LibraryWork {
 public:
  AlgorithmOperation(Runtime& runtime, Device& device, const AlgorithmCall& call, std::byte* temporary,
                     std::unique_ptr<Algorithm> algorithm);
  std::string describe() const override;
  std::unique_ptr<Operation> again() const override {
    return std::make_unique<AlgorithmOperation>(runtime_, device_, call_, temporary_, algorithm_->clone());
  }
  bool touches(const void* memory, std::size_t bytes) const override;

  bool may_access(const char* name, const void* memory, std::size_t bytes) {
    return bytes == 0 || can_access(name, memory, bytes);
  }

 private:
  bool first_block_begins() override;
  bool last_block_ends() override;
  /// Calls `part` of the algorithm, which returns whether it is alive.
  template <class Part>
  bool run(Part part);
  /// What the temporary storage holds while the algorithm runs.
  std::vector<std::uint64_t> marks() const;

  AlgorithmCall call_;
  std::byte* temporary_;
  std::unique_ptr<Algorithm> algorithm_;
};

}  // namespace vgpu
