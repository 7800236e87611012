// One run of chapter 01 on given sizes, compared on every element. For the tests of this chapter.
#pragma once

#include <vector>

#include "01_column_split/column_split.cuh"
#include "overlap/data/verify.hpp"

namespace overlap::column_split {

/// Runs `matmul` once on integers drawn from `seed` and compares all of C, poisoned before.
inline Verification run_and_compare(ColumnSplitMatmul& matmul, MatmulShape shape, std::uint64_t seed) {
  PinnedBuffer<int> a(shape.m * shape.k), b(shape.k * shape.n), c(shape.m * shape.n);
  fill_integers({a.begin(), a.end()}, -8, 8, seed);
  fill_integers({b.begin(), b.end()}, -8, 8, seed + 1);
  std::vector<int> expected(c.size());
  reference_matmul(shape, {a.begin(), a.end()}, {b.begin(), b.end()}, expected);
  poison({c.begin(), c.end()});
  matmul.run(a.data(), b.data(), c.data());
  matmul.synchronize();
  return compare_matrices(expected, {c.begin(), c.end()}, shape.n);
}

inline Verification run_and_compare(int gpus, MatmulShape shape, std::uint64_t seed) {
  ColumnSplitMatmul matmul(gpus, shape);
  return run_and_compare(matmul, shape, seed);
}

}  // namespace overlap::column_split
