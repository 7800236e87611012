// Chapter 15's sums of row-sparse gradients.
#pragma once

#include <vector>

#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "catalogue.hpp"

namespace overlap::planner {

/// Bytes of so many rows of the gradient, in f32.
inline double bytes_of(const SparseProblem& problem, std::int64_t rows) {
  return sizeof(float) * static_cast<double>(rows) * static_cast<double>(problem.shape.features);
}

/// Those that every rank plans for itself.
std::vector<Variant> planned_variants(SparseProblem problem, sparse_nonzero::SparseCall call);

}  // namespace overlap::planner
