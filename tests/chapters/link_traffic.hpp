// What a call moves between GPUs, as virtual GPUs count it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "overlap/data/cost.hpp"
#include "overlap/gpu/ranks.hpp"
#include "vgpu/control.hpp"

namespace overlap {

/// What went over one link, or over several.
struct Moved {
  std::int64_t bytes = 0, copies = 0;

  Moved& operator+=(const Moved& more) {
    bytes += more.bytes;
    copies += more.copies;
    return *this;
  }
};

/// What went from each GPU to each other, within each of them, and to and from the host.
class LinkTraffic {
 public:
  LinkTraffic() = default;
  /// All that has gone so far between that many GPUs.
  explicit LinkTraffic(int gpus) : gpus_(gpus) {
    for (int from = vgpu::kHost; from < gpus; ++from) {
      for (int to = vgpu::kHost; to < gpus; ++to) {
        const vgpu::Traffic link = vgpu::traffic(from, to);
        links_.push_back({static_cast<std::int64_t>(link.bytes), static_cast<std::int64_t>(link.copies)});
      }
    }
  }

  LinkTraffic since(const LinkTraffic& before) const {
    LinkTraffic moved = *this;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      moved.links_[i].bytes -= before.links_[i].bytes;
      moved.links_[i].copies -= before.links_[i].copies;
    }
    return moved;
  }

  /// From one GPU, or vgpu::kHost, to another.
  const Moved& over(int from, int to) const {
    const int row = gpus_ - vgpu::kHost;
    return links_.at(static_cast<std::size_t>((from - vgpu::kHost) * row + to - vgpu::kHost));
  }
  Moved out_of(int gpu) const {
    Moved all;
    for (int other = 0; other < gpus_; ++other) all += other == gpu ? Moved{} : over(gpu, other);
    return all;
  }
  Moved into(int gpu) const {
    Moved all;
    for (int other = 0; other < gpus_; ++other) all += other == gpu ? Moved{} : over(other, gpu);
    return all;
  }

 private:
  int gpus_ = 0;
  std::vector<Moved> links_;
};

/// What all ranks' calls of `call(stream)` move, each on its rank's stream. Collective.
template <typename Call>
LinkTraffic traffic_of(Rank& rank, const Call& call) {
  rank.barrier();
  const LinkTraffic before(rank.size());
  rank.barrier();
  call(rank.stream());
  rank.synchronize(rank.stream());
  rank.barrier();
  const LinkTraffic moved = LinkTraffic(rank.size()).since(before);
  rank.barrier();
  return moved;
}

/// Bytes into a rank's GPU and out of it are those of its cost card.
inline void expect_bytes_of(const Cost& cost, const LinkTraffic& moved, int rank) {
  EXPECT_EQ(moved.into(rank).bytes, cost.bytes_in) << "rank " << rank;
  EXPECT_EQ(moved.out_of(rank).bytes, cost.bytes_out) << "rank " << rank;
}

}  // namespace overlap
