// How far a product of real numbers may be from the right one, and the comparison within that bound.
//
// Notation of Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 2002: u is the relative
// error of one rounding, gamma(n, u) = n u / (1 - n u).
//
// - A sum of k products, added in any order, with each operation's relative error at most u, differs from the
//   exact one by at most gamma(k, u) (|a_1 b_1| + ... + |a_k b_k|): section 3.1, and 4.2 for "any order"; for
//   all of C = A B that is |C - C'| <= gamma(k, u) |A| |B|, section 3.5. The inputs count as exact: the
//   reference works on the rounded ones.
// - u of the sums in f32 is taken as 2^-23, twice that of rounding to nearest, because tensor cores cut off
//   (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science,
//   2021). They add several products at a time, cut to a few bits more than the largest one's; with the bits
//   that Ampere and later keep this loses less than one such rounding for each product.
// - If the sum over k is cut into several that are stored in a narrower type and added there, each storing
//   and each addition rounds once more, with that type's u. Errors of several kinds combine as
//   gamma_1 + gamma_2 + gamma_1 gamma_2 (Higham, lemma 3.3).
// - (|A| |B|)_ij <= (Euclidean norm of A's row i) (norm of B's column j), by Cauchy and Schwarz. For random
//   normals that is pi / 2 times as much, and it takes no second product.
// - The result is rounded to C's type once, to nearest: a relative error u of that type, or half of its
//   smallest number.
//
// The bound is proven, so no right result fails. It is far from tight: rounding errors have different signs
// and partly cancel. Exact data (data.hpp) notice what it lets pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "overlap/data/verify.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap {

/// How a product's sums over k are made.
struct Accumulation {
  /// The type in which the partial sums are stored and added. Products are always summed in f32 first.
  ElementType partial_type = ElementType::kF32;
  /// Partial sums: each is rounded to partial_type, and so is each sum of two of them.
  int partials = 1;
};

/// Element c of a product may be off by magnitude * (|A| |B|)_ij + value * |c| + absolute.
struct Tolerance {
  double magnitude = 0;  ///< for the roundings of the sums: relative to what is summed
  double value = 0;      ///< for the rounding of the result: relative to the result
  double absolute = 0;   ///< for numbers next to 0, where the roundings of a type are no longer relative
};

/// The bound above for sums over k >= 0 of products of elements of type `input`, with a result of type
/// `output`. Throws std::invalid_argument if a type is int32 (there nothing is rounded), or if there is no
/// partial sum; UsageError if there are so many roundings (2^22 in f32) that no bound is left.
Tolerance matmul_tolerance(std::int64_t k, ElementType input, ElementType output,
                           Accumulation accumulation = {});

/// How far two results that each keep within `tolerance` can be from each other, in terms of one of them.
Tolerance between_two_results(Tolerance tolerance);

/// Euclidean norms of all rows of A and of all columns of B.
struct MatmulNorms {
  std::vector<double> a_rows;     ///< m of them, by row of A
  std::vector<double> b_columns;  ///< n of them, by column of B
};

/// The norms of A[m, k] and B[k, n]. Throws std::invalid_argument if a span's size does not fit the shape.
template <Floating T>
MatmulNorms matmul_norms(MatmulShape shape, std::span<const T> a, std::span<const T> b);

/// Compares all elements of one shard of C, within the tolerance; its norms are those of the shard's rows and
/// columns, from 0. What is expected is the exact result, as reference_matmul<T, double> has it. NaN and
/// infinities never pass. Throws std::invalid_argument if sizes differ or if something expected is not
/// finite.
template <Floating T>
Verification compare_within(std::span<const double> expected, std::span<const T> actual, const Shard& shard,
                            Tolerance tolerance, const MatmulNorms& norms);
/// The same against another result of the same type; the tolerance is one that between_two_results() gives.
template <Floating T>
Verification compare_within(std::span<const T> expected, std::span<const T> actual, const Shard& shard,
                            Tolerance tolerance, const MatmulNorms& norms);

/// Compares all elements of two matrices of `columns` columns, none of which may be off by more than
/// `tolerance`. Otherwise as above.
template <Floating T>
Verification compare_within(std::span<const double> expected, std::span<const T> actual, std::int64_t columns,
                            double tolerance);

}  // namespace overlap
