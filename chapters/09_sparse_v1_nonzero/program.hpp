// Chapter 09: how all versions are predicted, which differ in their search.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_nonzero {

/// What all versions have in common, then this search. Neither waits nor messages depend on the types.
inline Plan<SparseSum> search_plan(std::string rule, Results::Fields numbers = {}) {
  return {.steps = [step = Step{std::move(rule), std::move(numbers)}](const SparseSum& sum) {
    Step search = step;
    search.numbers.emplace_back("frame_waits", frame_cost<std::int32_t, float>(sum.call).host_waits);
    return std::vector{search};
  }};
}

}  // namespace overlap::sparse_nonzero
