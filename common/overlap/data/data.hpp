// Data for matrices. Element (row, column) of the whole matrix depends on the seed and on its place only: the
// data are the same on every platform and for any way to cut them into shards, so each rank makes its own
// shard. All functions run on all hardware threads, make no CUDA call and throw std::invalid_argument if
// `out` has not shard.elements() elements or the shard does not lie in its matrix.
//
// Exact data. With A from fill_sparse_signs and B from fill_ternary all partial sums of a product C = A B, in
// any order, are integers that the working type holds, so the result has to be right to the last bit. (Dense
// values of -1, 0 and 1 would not do: bf16 holds integers to 256 only.)
#pragma once

#include <cstdint>
#include <span>

#include "overlap/data/matrix.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap {

/// How many elements of a row of A fill_sparse_signs makes other than 0: 256 for bf16, 2048 for other types.
/// A sum of so many +-1 is exact in T.
template <Element T>
constexpr std::int64_t signs_per_row() {
  return type_of<T>() == ElementType::kBf16 ? 256 : 2048;
}

/// The elements of a shard of A: in every row of the whole matrix min(k, signs_per_row<T>()) elements are +1
/// or -1, the others are 0; k is the matrix's width. Their places are random, one in each of so many strata
/// of K, which cover it in equal parts. In a stratum of w columns the rows 0 ... w - 1 have w different
/// places (and so have each w rows that follow), so every k is used by some row as soon as
/// rows * signs_per_row<T>() >= k. Throws std::invalid_argument also if the width exceeds 2^31.
template <Element T>
void fill_sparse_signs(std::span<T> out, const Shard& shard, std::uint64_t seed);

/// -1, 0 and 1, each with probability 1/3.
template <Element T>
void fill_ternary(std::span<T> out, const Shard& shard, std::uint64_t seed);

/// Random normals of mean 0, rounded to T: the data of timed runs (products of zeros take less power, and so
/// less time). Made of integers up to one multiplication, so that no platform's rounding matters: 64 fair
/// coins, whose sum's steps two uniform numbers fill. The distribution function is within 0.001 of the
/// normal one, and no value exceeds 8.21 stddev. Throws std::invalid_argument also unless 0 <= stddev <
/// infinity.
template <Floating T>
void fill_normal(std::span<T> out, const Shard& shard, std::uint64_t seed, double stddev = 1);

}  // namespace overlap
