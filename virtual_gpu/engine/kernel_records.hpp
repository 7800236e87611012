// What the runtime remembers of kernels beside their launches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "vgpu/control.hpp"

namespace vgpu {

/// Kernels are named by their KernelInfo::key.
class KernelRecords {
 public:
  /// cudaFuncSetAttribute: from now on the kernel may have so much dynamic shared memory.
  void set_dynamic_shared_limit(const void* kernel, std::size_t bytes) { shared_limits_[kernel] = bytes; }
  /// The most dynamic shared memory of the kernel's blocks: `standard`, or more if that was asked for.
  std::size_t dynamic_shared_limit(const void* kernel, std::size_t standard) const {
    const auto set = shared_limits_.find(kernel);
    return set == shared_limits_.end() ? standard : std::max(standard, set->second);
  }

  /// True the first time that it is asked of this parameter of this kernel: a warning is said once.
  bool first_warning(const void* kernel, const std::string& parameter) {
    return warned_of_.emplace(kernel, parameter).second;
  }

  /// See vgpu::run_blocks().
  void run_only(BlockRange blocks) { blocks_ = blocks; }
  /// Of each kernel that is enqueued: the blocks that run.
  const BlockRange& blocks() const { return blocks_; }

  void note_grid(std::uint64_t blocks) { largest_grid_ = std::max(largest_grid_, blocks); }
  /// Blocks of the largest grid that has begun, at least 1.
  std::uint64_t largest_grid() const { return largest_grid_; }

 private:
  std::map<const void*, std::size_t> shared_limits_;
  std::set<std::pair<const void*, std::string>> warned_of_;
  BlockRange blocks_;
  std::uint64_t largest_grid_ = 1;
};

}  // namespace vgpu
