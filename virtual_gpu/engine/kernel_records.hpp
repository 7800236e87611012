// What the runtime remembers of kernels beside their launches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vgpu/control.hpp"
#include "vgpu/types.h"

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

  /// True the first time that it is asked of this kernel and GPU.
  bool first_launch(const std::string& kernel, int device) {
    return launched_.emplace(kernel, device).second;
  }

  /// Grids and blocks of the launches so far, each once: what tells where a thread of that number is.
  struct Shape {
    dim3 grid, block;
    std::uint64_t cluster;
  };
  std::uint64_t shape(const Shape& shape) {
    const auto same = [&](const Shape& known) {
      return equal(known.grid, shape.grid) && equal(known.block, shape.block) &&
             known.cluster == shape.cluster;
    };
    const auto found = std::find_if(shapes_.begin(), shapes_.end(), same);
    if (found != shapes_.end()) return static_cast<std::uint64_t>(found - shapes_.begin());
    if (shapes_.size() == kMaxShapes) return 0;
    shapes_.push_back(shape);
    return shapes_.size() - 1;
  }
  /// Less than 2^56, out of linear indices.
  static std::uint64_t thread_number(std::uint64_t shape, std::uint64_t block, std::uint64_t thread) {
    return (shape << kBlockBits | block) << kThreadBits | thread;
  }
  static bool same_block(std::uint64_t thread, std::uint64_t other) {
    return thread >> kThreadBits == other >> kThreadBits;
  }
  struct Numbered {
    Shape shape;
    std::uint64_t block, thread;
  };
  Numbered numbered(std::uint64_t number) const {
    const std::uint64_t shape = number >> (kBlockBits + kThreadBits);
    return {shapes_[shape < shapes_.size() ? shape : 0],
            number >> kThreadBits & ((std::uint64_t{1} << kBlockBits) - 1),
            number & ((std::uint64_t{1} << kThreadBits) - 1)};
  }

  /// See vgpu::run_blocks().
  void run_only(BlockRange blocks) { blocks_ = blocks; }
  /// Of each kernel that is enqueued: the blocks that run.
  const BlockRange& blocks() const { return blocks_; }

  void note_grid(std::uint64_t blocks) { largest_grid_ = std::max(largest_grid_, blocks); }
  /// Blocks of the largest grid that has begun, at least 1.
  std::uint64_t largest_grid() const { return largest_grid_; }

 private:
  static bool equal(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

  static constexpr int kBlockBits = 34, kThreadBits = 10;
  static constexpr std::size_t kMaxShapes = 1024;
  // First what counts if there are more: all in one row.
  std::vector<Shape> shapes_{{dim3(~0u), dim3(~0u), 1}};
  std::map<const void*, std::size_t> shared_limits_;
  std::set<std::pair<const void*, std::string>> warned_of_;
  std::set<std::pair<std::string, int>> launched_;
  BlockRange blocks_;
  std::uint64_t largest_grid_ = 1;
};

}  // namespace vgpu
