// All ranks' summands of C in f32, bit for bit those that chapter 19's kernel adds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "16_tensor_core_gemm/tile.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/ranks.hpp"

#include "partial_products.hpp"

namespace overlap::fused_reduce_scatter {

/// The summands of a call without multiprocessors set aside. The kernel goes through k forwards in each
/// block's first tile, backwards in its second one, and so on.
template <SixteenBit T, typename Tile>
class Summands {
 public:
  /// Collective. A barrier must follow the last call of of().
  Summands(Rank& rank, const ScatterProblem<T>& problem)
      : rank_(rank),
        shape_(product_of(problem.whole(), rank.size(), rank.id())),
        owners_(Owners::of<Tile>(product_of(problem.whole(), rank.size(), 0), rank.size())) {
    forwards_ = partial_products<T, Tile>(rank, shape_, problem.a(), problem.b());
    backwards_ = product_backwards(problem);
    all_forwards_ = rank.exchange(static_cast<const float*>(forwards_.data()));
    all_backwards_ = rank.exchange(static_cast<const float*>(backwards_.data()));
    find_directions();
  }

  /// Summand of `source` of element `index` of C, which this rank owns.
  float of(int source, std::int64_t index) const {
    const int row = static_cast<int>(index / shape_.n) - owners_.first_row[rank_.id()];
    const int column = static_cast<int>(index % shape_.n);
    const auto from = static_cast<std::size_t>(source);
    const bool backwards = goes_backwards_[from][number_of({row / Tile::kM, column / Tile::kN})];
    return (backwards ? all_backwards_ : all_forwards_)[from][index];
  }

 private:
  /// The rank's summand by matrices whose k-blocks are in reverse order. The last one, which is the first
  /// now, is filled up with zeros, as TMA does it.
  std::vector<float> product_backwards(const ScatterProblem<T>& problem) const {
    const std::vector<T> x = on_host(problem.a(), shape_.m * shape_.k);
    const std::vector<T> w = on_host(problem.b(), shape_.k * shape_.n);
    const std::int64_t blocks = tensor_core_gemm::tiling_of<Tile>(shape_).along_k;
    const std::int64_t span = tensor_core_gemm::kSpan, depth = blocks * span;
    std::vector<T> turned_x(static_cast<std::size_t>(shape_.m * depth), T{});
    std::vector<T> turned_w(static_cast<std::size_t>(depth * shape_.n), T{});
    for (std::int64_t k = 0; k < shape_.k; ++k) {
      const std::int64_t turned = (blocks - 1 - k / span) * span + k % span;
      for (std::int64_t row = 0; row < shape_.m; ++row)
        turned_x[static_cast<std::size_t>(row * depth + turned)] =
            x[static_cast<std::size_t>(row * shape_.k + k)];
      for (std::int64_t column = 0; column < shape_.n; ++column)
        turned_w[static_cast<std::size_t>(turned * shape_.n + column)] =
            w[static_cast<std::size_t>(k * shape_.n + column)];
    }
    return partial_products<T, Tile>(rank_, {shape_.m, shape_.n, depth},
                                     on_device(rank_.device(), turned_x).data(),
                                     on_device(rank_.device(), turned_w).data());
  }

  /// Finds in which direction each rank computes the tiles of this owner.
  void find_directions() {
    const std::vector<int> blocks =
        rank_.exchange(std::min(owners_.tiles(), tensor_core_gemm::multiprocessors_to_wait_on(rank_, 0)));
    for (int source = 0; source < rank_.size(); ++source) {
      const OwnedOrder order{owners_, source};
      std::vector<bool>& backwards = goes_backwards_.emplace_back(owners_.tiling(rank_.id()).tiles());
      for (int index = 0; index < order.tiles(); ++index) {
        const OwnedTile tile = order(index);
        if (tile.owner == rank_.id())
          backwards[number_of(tile.place)] = index / blocks[static_cast<std::size_t>(source)] % 2 != 0;
      }
    }
  }

  std::size_t number_of(tensor_core_gemm::TilePlace place) const {
    return static_cast<std::size_t>(place.m * owners_.along_n + place.n);
  }

  Rank& rank_;
  MatmulShape shape_;
  Owners owners_;
  std::vector<float> forwards_, backwards_;
  std::vector<const float*> all_forwards_, all_backwards_;  // [rank]
  std::vector<std::vector<bool>> goes_backwards_;           // [rank][tile of this owner]
};

}  // namespace overlap::fused_reduce_scatter
