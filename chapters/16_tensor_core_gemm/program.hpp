// Chapter 16: shared by the programs of this chapter and of the chapters that build on its kernel.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {

/// require_all_sizes() of the options, before ranks start.
inline void require_sizes_of(const Options& options, Report&) {
  require_all_sizes(options.shape, options.gpus);
}

/// The planner's rule for a kernel that takes the large tile. `numbers`: inputs of the rule beside the tile.
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
