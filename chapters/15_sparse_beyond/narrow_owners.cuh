// Chapter 15: contributor-owned sums with rows of 16 bits on the wire. Each rank rounds its sum of a row
// once, the owner adds the rounded sums in f32, and rounds the result once: half the bytes, and an error with
// a proven bound (narrow_bound()). Results are as wide as before.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "15_sparse_beyond/contributor_owners.cuh"
#include "overlap/gpu/element.hpp"

namespace overlap::sparse_beyond {

/// How far a result may be from the exact sum. c_r is rank r's own sum of the row's entries.
///
/// On its way c_r becomes c_r (1 + d), with |d| <= u = kWireRoundoff: an error of u |c_r| at most. The
/// owner's P - 1 additions in f32 add gamma(P - 1, 2^-24) times what they add. The sum is rounded once more,
/// u of itself. A number that is smaller than the type's normal ones is rounded by up to half its smallest
/// one. \param contributions |c_r|, added up over the ranks \param sum           the exact sum's magnitude
/// \param ranks         P
/// \param u             the relative error of a rounding to the wire's type
/// \param smallest      that type's smallest number
/// Source: Higham, Accuracy and Stability of Numerical Algorithms, sections 2.2, 3.1 and 4.2.
constexpr double narrow_bound(double contributions, double sum, int ranks, double u, double smallest) {
  const double roundings = (ranks - 1) * 0x1p-24, gamma = roundings / (1 - roundings);
  const double arrived = contributions * (1 + u) + ranks * smallest / 2;
  const double before_the_last = u * contributions + ranks * smallest / 2 + gamma * arrived;
  return before_the_last + u * (sum + before_the_last) + smallest / 2;
}

/// The type on the wire of rows of T: Narrow, or T if that is no wider.
template <typename T, typename Narrow>  // with constraints g++ 12 takes them for unmet
using WireOf = std::conditional_t<(sizeof(T) > sizeof(Narrow)), Narrow, T>;

/// Rows travel in bf16: 8 significant bits, and as large and small as f32.
template <SparseIndex Index, Floating T>
using Bf16Owners = OwnersAmongContributors<Index, T, WireOf<T, __nv_bfloat16>>;
/// Rows travel in f16: 11 significant bits, and 65,504 is the largest number.
template <SparseIndex Index, Floating T>
using F16Owners = OwnersAmongContributors<Index, T, WireOf<T, __half>>;

/// Planned by every rank, added up by contributors, bf16 on the wire.
template <SparseIndex Index, Floating T>
using Bf16OwnersAllReduce = PlannedAllReduce<Index, T, Bf16Owners>;
/// The same with f16.
template <SparseIndex Index, Floating T>
using F16OwnersAllReduce = PlannedAllReduce<Index, T, F16Owners>;

}  // namespace overlap::sparse_beyond
