#include "problems.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>

#include "overlap/data/data.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/data/sparse_data.hpp"
#include "overlap/data/verify.hpp"

namespace overlap::teaching {
namespace {

std::uint64_t seed_of_call(std::uint64_t seed, int call) {
  return seed + 2 * static_cast<std::uint64_t>(call);
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<T> values_of(const std::byte* bytes, std::size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(static_cast<void*>(values.data()), bytes, count * sizeof(T));
  return values;
}

/// "call 2, rank 1 of 3: "
std::string who(int call, int rank, int ranks) {
  return "call " + std::to_string(call + 1) + ", rank " + std::to_string(rank) + " of " +
         std::to_string(ranks) + ": ";
}

// ---- GEMMs: exact data, whose sums are exact in any order
// ---------------------------------------------------

/// The part of A, B and C that a rank holds.
struct Shards {
  Shard a, b, c;
};

Shards shards_of(const Case& which, int rank) {
  const auto [m, n, k] = which.sizes;
  const int ranks = which.ranks;
  if (which.problem == "gather") {
    return {row_shard(m, k, ranks, rank), column_shard(k, n, ranks, rank), column_shard(m, n, ranks, rank)};
  }
  return {column_shard(m, k, ranks, rank), row_shard(k, n, ranks, rank), row_shard(m, n, ranks, rank)};
}

template <typename T>
std::vector<T> factor(const Shard& shard, bool first, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(shard.elements()));
  if (first) {
    fill_sparse_signs(std::span<T>(values), shard, seed);
  } else {
    fill_ternary(std::span<T>(values), shard, seed + 1);
  }
  return values;
}

template <typename T>
Input dense_input(const Case& which, int rank, std::uint64_t seed) {
  const Shards shards = shards_of(which, rank);
  return {bytes_of(factor<T>(shards.a, true, seed)), bytes_of(factor<T>(shards.b, false, seed)),
          static_cast<std::uint64_t>(shards.c.elements()) * sizeof(T), 0};
}

template <typename T>
std::string dense_difference(const Case& which, std::uint64_t seed, int call, const Answer& answer) {
  const auto [m, n, k] = which.sizes;
  const std::vector<T> a = factor<T>(whole_matrix(m, k), true, seed),
                       b = factor<T>(whole_matrix(k, n), false, seed);
  std::vector<T> c(static_cast<std::size_t>(m * n));
  reference_matmul<T>(which.sizes, a, b, c);
  for (int rank = 0; rank < which.ranks; ++rank) {
    const Shard shard = shards_of(which, rank).c;
    std::vector<T> expected;
    for (std::int64_t row = shard.rows.begin; row < shard.rows.end; ++row) {
      const auto* line = c.data() + row * n;
      expected.insert(expected.end(), line + shard.columns.begin, line + shard.columns.end);
    }
    const auto& bytes = answer.results[static_cast<std::size_t>(call * which.ranks + rank)];
    const std::vector<T> found = values_of<T>(bytes.data(), expected.size());
    const Verification result =
        compare_matrices(std::span<const T>(expected), std::span<const T>(found), shard);
    if (result.ok()) continue;
    const Mismatch& first = result.first.front();
    std::ostringstream text;
    text << who(call, rank, which.ranks) << result.mismatches << " of " << result.elements
         << " elements are wrong; the first is C[" << first.row << ", " << first.column << "] in its shard ("
         << describe(shard) << "): expected " << first.expected << ", found " << first.actual;
    if (std::isnan(first.actual)) text << " (never written?)";
    return text.str();
  }
  return "";
}

// ---- Sparse gradients -------------------------------------------------------------------------------------

/// Every other call is short, so that stale data of the call before would be noticed.
SparseData sparse_data(const Case& which, std::uint64_t seed, int call) {
  const std::int64_t entries = call % 2 == 0 ? which.sizes.k : which.sizes.k / 4 + 1;
  const bool uneven = (seed + static_cast<std::uint64_t>(call)) % 2 == 0;
  return SparseData({which.sizes.m, which.sizes.n, entries}, which.ranks,
                    uneven ? RowPattern::kUneven : RowPattern::kZipf, entries / 3, seed);
}

std::size_t room(const Case& which) {
  return static_cast<std::size_t>(std::min(which.sizes.k * which.ranks, which.sizes.m));
}

template <typename T>
Input sparse_input(const Case& which, const SparseData& data, int rank) {
  const std::vector<std::int64_t>& rows = data.entries(rank);
  const std::vector<std::int32_t> indices(rows.begin(), rows.end());
  std::vector<T> values(data.shape().elements(static_cast<std::int64_t>(rows.size())));
  data.fill(rank, SparseValues::kExact, std::span<T>(values));
  const std::size_t bytes = 8 + room(which) * (4 + static_cast<std::size_t>(which.sizes.n) * sizeof(T));
  return {bytes_of(indices), bytes_of(values), bytes, static_cast<std::int64_t>(rows.size())};
}

template <typename T>
std::string sparse_difference(const Case& which, const SparseData& data, int call, const Answer& answer) {
  for (int rank = 0; rank < which.ranks; ++rank) {
    const std::byte* bytes = answer.results[static_cast<std::size_t>(call * which.ranks + rank)].data();
    std::int64_t count = 0;
    std::memcpy(&count, bytes, sizeof count);
    const auto expected = static_cast<std::int64_t>(data.global_rows().size());
    if (count != expected) {
      const std::string found = count == -1 ? "none were returned" : std::to_string(count) + " were returned";
      return who(call, rank, which.ranks) + "the sum has " + std::to_string(expected) + " rows; " + found;
    }
    const auto rows = static_cast<std::size_t>(count);
    const auto indices = values_of<std::int32_t>(bytes + 8, rows);
    const auto values =
        values_of<T>(bytes + 8 + room(which) * 4, rows * static_cast<std::size_t>(which.sizes.n));
    const std::string wrong = data.difference<std::int32_t, T>(
        SparseValues::kExact, std::span<const std::int32_t>(indices), std::span<const T>(values));
    if (!wrong.empty()) return who(call, rank, which.ranks) + wrong;
  }
  return "";
}

// ---- Both -------------------------------------------------------------------------------------------------

template <typename T>
void add_inputs(const Case& which, std::uint64_t seed, int call, std::vector<Input>& inputs) {
  if (which.problem == "sparse") {
    const SparseData data = sparse_data(which, seed, call);
    for (int rank = 0; rank < which.ranks; ++rank) inputs.push_back(sparse_input<T>(which, data, rank));
  } else {
    for (int rank = 0; rank < which.ranks; ++rank) inputs.push_back(dense_input<T>(which, rank, seed));
  }
}

template <typename T>
std::string difference(const Case& which, std::uint64_t seed, int call, const Answer& answer) {
  if (which.problem == "sparse")
    return sparse_difference<T>(which, sparse_data(which, seed, call), call, answer);
  return dense_difference<T>(which, seed, call, answer);
}

}  // namespace

std::vector<Input> inputs_of(const Case& which, std::uint64_t seed) {
  std::vector<Input> inputs;
  for (int call = 0; call < which.calls; ++call) {
    const std::uint64_t own = seed_of_call(seed, call);
    visit_type<__half, float>(
        which.type, [&](auto tag) { add_inputs<typename decltype(tag)::type>(which, own, call, inputs); });
  }
  return inputs;
}

std::string first_difference(const Case& which, std::uint64_t seed, const Answer& answer) {
  std::string found;
  for (int call = 0; call < which.calls && found.empty(); ++call) {
    const std::uint64_t own = seed_of_call(seed, call);
    visit_type<__half, float>(which.type, [&](auto tag) {
      found = difference<typename decltype(tag)::type>(which, own, call, answer);
    });
  }
  return found;
}

}  // namespace overlap::teaching
