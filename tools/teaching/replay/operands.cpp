#include "operands.hpp"

#include <cstring>

#include "overlap/data/data.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap::teaching {
namespace {

template <Floating T>
std::vector<T> values_of_a(const Shard& shard, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(shard.elements()));
  fill_sparse_signs(std::span<T>(values), shard, seed);
  return values;
}

template <Floating T>
std::vector<T> values_of_b(const Shard& shard, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(shard.elements()));
  fill_ternary(std::span<T>(values), shard, seed + 1);
  return values;
}

template <Floating T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <Floating T>
Verification compare(const Shard& of_c, std::int64_t k, std::uint64_t seed,
                     std::span<const std::byte> bytes) {
  std::vector<T> c(bytes.size() / sizeof(T)), expected(c.size());
  if (!c.empty()) std::memcpy(c.data(), bytes.data(), bytes.size());
  // Of the factors, all that this part of C depends on.
  const Range all{0, k};
  const std::vector<T> a = values_of_a<T>({of_c.rows, all, k, -1}, seed);
  const std::vector<T> b = values_of_b<T>({all, of_c.columns, of_c.width, -1}, seed);
  reference_matmul<T>({of_c.rows.size(), of_c.columns.size(), k}, a, b, expected);
  return compare_matrices(std::span<const T>(expected), std::span<const T>(c), of_c);
}

}  // namespace

OperandShards shards_of(Sharing sharing, MatmulShape shape, int ranks, int rank) {
  const auto [m, n, k] = shape;
  if (sharing == Sharing::kGather)
    return {row_shard(m, k, ranks, rank), column_shard(k, n, ranks, rank), column_shard(m, n, ranks, rank)};
  return {column_shard(m, k, ranks, rank), row_shard(k, n, ranks, rank), row_shard(m, n, ranks, rank)};
}

LogCase log_case(Sharing sharing, MatmulShape shape, int ranks, int calls, ElementType type) {
  LogCase known{.ranks = ranks, .calls = calls, .operands = {}};
  const auto element = static_cast<std::uint64_t>(size_of(type));
  for (int rank = 0; rank < ranks; ++rank) {
    const OperandShards shards = shards_of(sharing, shape, ranks, rank);
    const auto bytes = [&](const Shard& shard) {
      return static_cast<std::uint64_t>(shard.elements()) * element;
    };
    known.operands.push_back({bytes(shards.a), bytes(shards.b), bytes(shards.c)});
  }
  return known;
}

CallValues call_values(Sharing sharing, MatmulShape shape, int ranks, ElementType type, std::uint64_t seed) {
  return visit_type<__half, __nv_bfloat16, float>(type, [=](auto tag) -> CallValues {
    using T = typename decltype(tag)::type;
    const auto shards = [=](int rank) { return shards_of(sharing, shape, ranks, rank); };
    return {.a = [=](int rank) { return bytes_of(values_of_a<T>(shards(rank).a, seed)); },
            .b = [=](int rank) { return bytes_of(values_of_b<T>(shards(rank).b, seed)); },
            .compare =
                [=](int rank, std::span<const std::byte> c) {
                  return compare<T>(shards(rank).c, shape.k, seed, c);
                }};
  });
}

}  // namespace overlap::teaching
