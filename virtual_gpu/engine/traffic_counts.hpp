// Bytes and copies by link.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "vgpu/control.hpp"

namespace vgpu {

class TrafficCounts {
 public:
  /// So many bytes went from one GPU to another (kHost: the host), in so many copies.
  void add(int from, int to, std::uint64_t bytes, std::uint64_t copies) {
    Traffic& link = links_[{from, to}];
    link.bytes += bytes;
    link.copies += copies;
  }
  Traffic between(int from, int to) const {
    const auto found = links_.find({from, to});
    return found == links_.end() ? Traffic{} : found->second;
  }

 private:
  std::map<std::pair<int, int>, Traffic> links_;  // by source and destination
};

}  // namespace vgpu
