// Chapter 09: the planner's rules for all versions, which differ in their search only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_nonzero {

/// The steps that all versions share, then this search. Waits and messages do not depend on the types.
inline Plan<SparseSum> search_plan(std::string rule, Results::Fields numbers = {}) {
  return {.steps = [step = Step{std::move(rule), std::move(numbers)}](const SparseSum& sum) {
    Step search = step;
    search.numbers.emplace_back("frame_waits", frame_cost<std::int32_t, float>(sum.call).host_waits);
    return std::vector{search};
  }};
}

}  // namespace overlap::sparse_nonzero
