// Chapter 16: what the programs of this chapter and of those that build on its kernel have in common.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {

/// Refuses sizes that TMA cannot step over, before there are ranks.
inline void require_sizes_of(const Options& options, Report&) {
  require_all_sizes(options.shape, options.gpus);
}

/// How a kernel is predicted that takes the large tile, whatever the sizes: by a rule, and by what `numbers`
/// says beside the tile.
inline Plan<DenseCall> tile_plan(std::string rule,
                                 std::function<Results::Fields(const DenseCall&)> numbers = {}) {
  return {.steps = [rule = std::move(rule), numbers = std::move(numbers)](const DenseCall& call) {
    Step step = {rule, numbers ? numbers(call) : Results::Fields{}};
    step.numbers.emplace_back("tile_rows", LargeTile::kM);
    step.numbers.emplace_back("tile_columns", LargeTile::kN);
    return std::vector{step};
  }};
}

}  // namespace overlap::tensor_core_gemm
