// A rank's A, B and C: where they lie in the whole matrices, and the judge's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "call_log.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/element_type.hpp"
#include "overlap/program/algorithms.hpp"

namespace overlap::teaching {

/// The parts of A, B and C that a rank holds.
struct OperandShards {
  Shard a, b, c;
};
OperandShards shards_of(Sharing sharing, MatmulShape shape, int ranks, int rank);

/// What a log of these sizes has no say in.
LogCase log_case(Sharing sharing, MatmulShape shape, int ranks, int calls, ElementType type);

/// One call's values, as bytes: exact data (overlap/data/data.hpp), and what C has to be.
struct CallValues {
  std::function<std::vector<std::byte>(int rank)> a, b;
  /// Compares every element of the rank's C.
  std::function<Verification(int rank, std::span<const std::byte> c)> compare;
};
CallValues call_values(Sharing sharing, MatmulShape shape, int ranks, ElementType type, std::uint64_t seed);

}  // namespace overlap::teaching
