// Freivalds' check: is C = A B, for exact data and products that are too large for the CPU reference?
//
// For a random vector x, A (B x) and C x need m k + k n + m n multiply-adds instead of m k n, and they differ
// if C is wrong, almost certainly (Freivalds, Probabilistic machines can use less running time, 1977). Row i
// of both is compared by itself, which names the wrong rows. A row of C is wrong by d, not all 0: it passes
// only if d x = 0. Whatever the other elements of x are, at most one value of x_j, where d_j is not 0, makes
// it so; x_j is one of 2^31 integers, all equally likely. So a wrong row is missed with a probability of at
// most 2^-31 for each vector; and never if only one of its elements is wrong, since no x_j is 0.
//
// All arithmetic is in 64-bit integers and exact. With 1 <= x_j <= 2^31 no sum exceeds
//   |A (B x)|_i, |C x|_i <= r max|B| n 2^31,   where r is the largest sum of absolute values of a row of A,
// because an element of C above r max|B| is wrong at once, without a sum. So r max|B| n < 2^32 is required;
// data from fill_sparse_signs and fill_ternary (data.hpp) keep it up to n = 2,097,151.
#pragma once

#include <cstdint>
#include <span>

#include "overlap/data/verify.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap {

/// Checks one shard of C, of m x n elements, against all that makes it: the A[m, k] of its rows and the
/// B[k, n] of its columns, dense and row-major. Rank r needs nothing of other ranks' results. Elements of A
/// and B are integers; an element of C that is none, or NaN, is a mismatch. The rows found wrong are then
/// computed in full, one after the other, until kMismatchesShown mismatches are known; more of them are not
/// counted. The vectors depend on `seed`, `vectors` >= 1 of them. `shard` says where C lies and who holds it.
/// T is any element type; C's type Out is T or float.
/// Throws std::invalid_argument if sizes do not fit or if an element of A or B is no integer, and UsageError
/// if the bound above is exceeded.
template <Element T, typename Out = T>
Verification check_product(MatmulShape shape, std::span<const T> a, std::span<const T> b,
                           std::span<const std::type_identity_t<Out>> c, const Shard& shard,
                           std::uint64_t seed, int vectors = 1);

}  // namespace overlap
