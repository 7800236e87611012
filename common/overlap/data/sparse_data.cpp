#include "overlap/data/sparse_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

#include "overlap/data/parallel.hpp"
#include "overlap/data/random.hpp"
#include "overlap/data/text.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr std::int64_t kStepsOfAValue = 8;  // see worth_a_thread(): two random numbers and a conversion

/// A sequence of random numbers.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream)
      : bits_(RandomBits::more(seed ^ RandomBits::more(stream)), kSparseRows) {}

  double uniform() { return static_cast<double>(bits_.at(next_++) >> 11) * 0x1p-53; }  // in [0, 1)
  std::int64_t below(std::int64_t count) {
    return std::min(count - 1, static_cast<std::int64_t>(uniform() * static_cast<double>(count)));
  }
  void shuffle(Rows& rows) {
    for (std::size_t i = rows.size(); i > 1; --i)
      std::swap(rows[i - 1], rows[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  RandomBits bits_;
  std::uint64_t next_ = 0;
};

/// `count` distinct rows of `rows`, all sets equally likely (Floyd's algorithm: Bentley, Programming Pearls,
/// "A sample of brilliance", 1987).
Rows uniform_rows(std::int64_t count, std::int64_t rows, Draws& draws) {
  std::unordered_set<std::int64_t> chosen;
  Rows result;
  for (std::int64_t last = rows - count; last < rows; ++last) {
    const std::int64_t row = draws.below(last + 1);
    result.push_back(chosen.insert(row).second ? row : last);
    chosen.insert(result.back());
  }
  return result;
}

/// Rows drawn with probabilities proportional to 1 / (row + 1), until `count` are distinct.
Rows zipf_rows(std::int64_t count, std::int64_t rows, Draws& draws) {
  std::vector<double> cumulated(static_cast<std::size_t>(rows));
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    cumulated[static_cast<std::size_t>(row)] = sum += 1 / static_cast<double>(row + 1);
  std::unordered_set<std::int64_t> chosen;
  Rows result;
  while (static_cast<std::int64_t>(result.size()) < count) {
    const auto place = std::upper_bound(cumulated.begin(), cumulated.end(), draws.uniform() * sum);
    const std::int64_t row = std::min(rows - 1, static_cast<std::int64_t>(place - cumulated.begin()));
    if (chosen.insert(row).second) result.push_back(row);
  }
  return result;
}

std::vector<Rows> draw(SparseShape shape, int ranks, RowPattern pattern, std::int64_t duplicates,
                       std::uint64_t seed) {
  const std::int64_t needed = pattern == RowPattern::kDisjoint ? ranks * shape.entries : shape.entries;
  if (needed > shape.rows) {
    throw UsageError("--entries: " + std::to_string(needed) + " different rows are wanted of a table of " +
                     std::to_string(shape.rows));
  }
  std::vector<Rows> all;
  Draws common(seed, 0);
  const Rows pool = pattern == RowPattern::kDisjoint || pattern == RowPattern::kIdentical
                        ? uniform_rows(needed, shape.rows, common)
                        : Rows{};
  for (int rank = 0; rank < ranks; ++rank) {
    Draws draws(seed, static_cast<std::uint64_t>(rank) + 1);
    const std::int64_t own =
        pattern == RowPattern::kUneven ? (rank + 1) * shape.entries / ranks : shape.entries;
    const bool uniform = pattern == RowPattern::kUniform || pattern == RowPattern::kUneven;
    Rows rows = uniform                        ? uniform_rows(own, shape.rows, draws)
                : pattern == RowPattern::kZipf ? zipf_rows(own, shape.rows, draws)
                                               : pool;
    if (pattern == RowPattern::kDisjoint)
      rows.assign(pool.begin() + rank * shape.entries, pool.begin() + (rank + 1) * shape.entries);
    for (std::int64_t i = 0; i < duplicates && own > 0; ++i)
      rows.push_back(rows[static_cast<std::size_t>(draws.below(own))]);
    draws.shuffle(rows);
    all.push_back(std::move(rows));
  }
  return all;
}

/// One rounding in T, to nearest.
template <Floating T>
double unit_roundoff() {
  return 1 / static_cast<double>(largest_integer<T>());
}

}  // namespace

const char* name_of(IndexType type) { return type == IndexType::kInt32 ? "int32" : "int64"; }

const char* name_of(RowPattern pattern) {
  constexpr std::array kNames = {"uniform", "zipf", "identical", "disjoint", "uneven"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

SparseData::SparseData(SparseShape shape, int ranks, RowPattern pattern, std::int64_t duplicates,
                       std::uint64_t seed)
    : SparseData(shape, draw(shape, ranks, pattern, duplicates, seed), seed) {}

SparseData::SparseData(SparseShape shape, std::vector<std::vector<std::int64_t>> entries, std::uint64_t seed)
    : shape_(shape), entries_(std::move(entries)), seed_(seed) {
  for (const Rows& rows : entries_) {
    for (const std::int64_t row : rows) {
      if (row < 0 || row >= shape.rows) throw std::invalid_argument("SparseData: a row is not in the table");
    }
  }
  sums_ = sums_of(0, ranks());
  global_rows_ = sums_.rows;
  for (int rank = 0; rank < ranks(); ++rank)
    total_rows_ += static_cast<std::int64_t>(local_rows(rank).size());
  for (std::size_t g = 0; g < global_rows_.size(); ++g)
    max_entries_per_row_ = std::max(max_entries_per_row_, sums_.begins[g + 1] - sums_.begins[g]);
}

Rows SparseData::local_rows(int rank) const {
  Rows rows = entries(rank);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

SparseData::Sums SparseData::sums_of(int first_rank, int last_rank) const {
  std::vector<std::pair<std::int64_t, Entry>> sorted;
  for (int rank = first_rank; rank < last_rank; ++rank) {
    for (std::size_t i = 0; i < entries(rank).size(); ++i)
      sorted.push_back({entries(rank)[i], {rank, static_cast<std::int64_t>(i)}});
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  Sums sums;
  for (const auto& [row, entry] : sorted) {
    if (sums.rows.empty() || sums.rows.back() != row) {
      sums.rows.push_back(row);
      sums.begins.push_back(static_cast<std::int64_t>(sums.entries.size()));
    }
    sums.entries.push_back(entry);
  }
  sums.begins.push_back(static_cast<std::int64_t>(sums.entries.size()));
  return sums;
}

double SparseData::value(const Entry& entry, std::int64_t column, SparseValues kind,
                         std::int64_t limit) const {
  const RandomBits bits(RandomBits::more(seed_ ^ static_cast<std::uint64_t>(entry.rank)), kSparseValues);
  const std::uint64_t word =
      bits.at(static_cast<std::uint64_t>(entry.number) * static_cast<std::uint64_t>(shape_.features) +
              static_cast<std::uint64_t>(column));
  if (kind != SparseValues::kReal) {
    // Never 0, so that a missing row changes the result.
    const auto magnitude = static_cast<double>(1 + below(static_cast<std::uint64_t>(limit), word));
    return (word & 1) != 0 ? magnitude : -magnitude;
  }
  return static_cast<double>(static_cast<std::int64_t>(word) >> 40) * 0x1p-23;  // 24 bits: exact in f32
}

template <Floating T>
std::int64_t SparseData::limit(SparseValues kind) const {
  if (kind == SparseValues::kReal) return 0;
  const std::int64_t largest =
      kind == SparseValues::kExact
          ? largest_integer<T>()
          : std::min({largest_integer<T>(), largest_integer<__half>(), largest_integer<__nv_bfloat16>()});
  const std::int64_t limit =
      std::min<std::int64_t>(127, largest / std::max<std::int64_t>(1, max_entries_per_row_));
  if (limit < 1)
    throw std::invalid_argument("SparseData: so many entries have one row that its sum is not exact");
  return limit;
}

template <Floating T>
void SparseData::fill(int rank, SparseValues values, std::span<T> out) const {
  const auto count = static_cast<std::int64_t>(entries(rank).size());
  if (static_cast<std::int64_t>(out.size()) != count * shape_.features)
    throw std::invalid_argument("SparseData::fill: wrong size");
  const std::int64_t most = limit<T>(values);
  const auto fill_share = [&](Range share) {
    for (std::int64_t entry = share.begin; entry < share.end; ++entry) {
      T* row = out.data() + entry * shape_.features;
      for (std::int64_t column = 0; column < shape_.features; ++column)
        row[column] = from_double<T>(value({rank, entry}, column, values, most));
    }
  };
  parallel_shares(count, fill_share, worth_a_thread(kStepsOfAValue * shape_.features));
}

template <SparseIndex Index, Floating T>
std::string SparseData::difference_from(const Sums& sums, SparseValues kind, std::span<const Index> indices,
                                        std::span<const T> values, double wire_roundoff) const {
  const auto rows = static_cast<std::int64_t>(sums.rows.size());
  if (static_cast<std::int64_t>(indices.size()) != rows) {
    return std::to_string(indices.size()) + " rows came out, " + std::to_string(rows) + " are expected";
  }
  for (std::int64_t g = 0; g < rows; ++g) {
    const std::int64_t expected = sums.rows[static_cast<std::size_t>(g)];
    const std::int64_t actual = indices[static_cast<std::size_t>(g)];
    if (actual != expected) {
      return "row " + std::to_string(g) + " of the result is row " + std::to_string(actual) +
             " of the table, and not row " + std::to_string(expected);
    }
  }
  if (static_cast<std::int64_t>(values.size()) != rows * shape_.features)
    return std::to_string(values.size()) + " values came out, " + std::to_string(rows * shape_.features) +
           " are expected";

  const std::int64_t most = limit<T>(kind);
  std::vector<std::int64_t> wrong(static_cast<std::size_t>(rows), 0),
      first(static_cast<std::size_t>(rows), 0);
  const auto expected = [&](std::int64_t g, std::int64_t column) {
    return sum_of<T>(sums, static_cast<std::size_t>(g), column, kind, most, wire_roundoff);
  };
  const auto actual_of = [&](std::int64_t g, std::int64_t column) {
    return value_of(values[static_cast<std::size_t>(g * shape_.features + column)]);
  };
  const auto compare = [&](Range share) {
    for (std::int64_t g = share.begin; g < share.end; ++g) {
      for (std::int64_t column = 0; column < shape_.features; ++column) {
        const Sum sum = expected(g, column);
        if (std::abs(actual_of(g, column) - sum.value) <= sum.bound) continue;  // never true of a NaN
        if (wrong[static_cast<std::size_t>(g)]++ == 0) first[static_cast<std::size_t>(g)] = column;
      }
    }
  };
  parallel_shares(rows, compare, worth_a_thread(kStepsOfAValue * shape_.features * ranks()));
  const std::int64_t all = std::accumulate(wrong.begin(), wrong.end(), std::int64_t{0});
  if (all == 0) return "";
  const std::int64_t g =
      std::find_if(wrong.begin(), wrong.end(), [](std::int64_t n) { return n > 0; }) - wrong.begin();
  const std::int64_t column = first[static_cast<std::size_t>(g)];
  return std::to_string(all) + " of " + std::to_string(values.size()) + " values are wrong; row " +
         std::to_string(sums.rows[static_cast<std::size_t>(g)]) + " of the table, column " +
         std::to_string(column) + ": expected " + fixed(expected(g, column).value, 6) + ", found " +
         fixed(actual_of(g, column), 6);
}

template <Floating T>
SparseData::Sum SparseData::sum_of(const Sums& sums, std::size_t row, std::int64_t column, SparseValues kind,
                                   std::int64_t limit, double wire_roundoff) const {
  double sum = 0, magnitude = 0;
  const std::int64_t begin = sums.begins[row], end = sums.begins[row + 1];
  for (std::int64_t e = begin; e < end; ++e) {
    // The value, rounded to the element type.
    const Entry& entry = sums.entries[static_cast<std::size_t>(e)];
    const double summand = value_of(from_double<T>(value(entry, column, kind, limit)));
    sum += summand;
    magnitude += std::abs(summand);
  }
  // gamma(n, u), with n roundings at most for each summand.
  const double roundings = static_cast<double>(end - begin + ranks()) * unit_roundoff<T>();
  // (1 + gamma) (1 + u)^2 - 1: each contribution is rounded once before it is sent, and their sum once.
  const double gamma = roundings / (1 - roundings), wire = wire_roundoff * (2 + wire_roundoff);
  return {sum, kind != SparseValues::kReal ? 0 : (gamma + wire + gamma * wire) * magnitude};
}

template <SparseIndex Index, Floating T>
bool SparseData::may_be_missing(std::size_t row, SparseValues kind, std::span<const Index> indices) const {
  // If sums are exact, they determine the rows of the result. Otherwise a sum may round to 0, so the result's
  // rows are taken.
  const bool there = std::binary_search(indices.begin(), indices.end(), sums_.rows[row]);
  bool zero = kind != SparseValues::kReal || !there;
  for (std::int64_t column = 0; zero && column < shape_.features; ++column) {
    const Sum sum = sum_of<T>(sums_, row, column, kind, limit<T>(kind));
    zero = std::abs(sum.value) <= sum.bound;
  }
  return zero;
}

template <typename Wanted>
SparseData::Sums SparseData::sums_where(const Wanted& wanted) const {
  Sums kept;
  for (std::size_t row = 0; row < sums_.rows.size(); ++row) {
    if (!wanted(sums_.rows[row], row)) continue;
    kept.rows.push_back(sums_.rows[row]);
    kept.begins.push_back(static_cast<std::int64_t>(kept.entries.size()));
    kept.entries.insert(kept.entries.end(), sums_.entries.begin() + sums_.begins[row],
                        sums_.entries.begin() + sums_.begins[row + 1]);
  }
  kept.begins.push_back(static_cast<std::int64_t>(kept.entries.size()));
  return kept;
}

template <SparseIndex Index, Floating T>
std::string SparseData::difference(SparseValues kind, std::span<const Index> indices,
                                   std::span<const T> values, const SparsePromise& promise) const {
  const bool dropped = promise.zero_rows == ZeroRows::kDropped;
  if (!dropped && !promise.keeps)
    return difference_from<Index, T>(sums_, kind, indices, values, promise.wire_roundoff);
  const Sums expected = sums_where([&](std::int64_t row, std::size_t place) {
    return (!promise.keeps || promise.keeps(row)) &&
           !(dropped && may_be_missing<Index, T>(place, kind, indices));
  });
  return difference_from<Index, T>(expected, kind, indices, values, promise.wire_roundoff);
}

template <SparseIndex Index, Floating T>
std::string SparseData::local_difference(int rank, SparseValues kind, std::span<const Index> indices,
                                         std::span<const T> values) const {
  return difference_from<Index, T>(sums_of(rank, rank + 1), kind, indices, values);
}

template std::string SparseData::difference(SparseValues, std::span<const std::int32_t>,
                                            std::span<const float>, const SparsePromise&) const;
template std::string SparseData::local_difference(int, SparseValues, std::span<const std::int32_t>,
                                                  std::span<const float>) const;
template std::string SparseData::difference(SparseValues, std::span<const std::int32_t>,
                                            std::span<const __half>, const SparsePromise&) const;
template std::string SparseData::local_difference(int, SparseValues, std::span<const std::int32_t>,
                                                  std::span<const __half>) const;
template std::string SparseData::difference(SparseValues, std::span<const std::int32_t>,
                                            std::span<const __nv_bfloat16>, const SparsePromise&) const;
template std::string SparseData::local_difference(int, SparseValues, std::span<const std::int32_t>,
                                                  std::span<const __nv_bfloat16>) const;
template std::string SparseData::difference(SparseValues, std::span<const std::int64_t>,
                                            std::span<const float>, const SparsePromise&) const;
template std::string SparseData::local_difference(int, SparseValues, std::span<const std::int64_t>,
                                                  std::span<const float>) const;
template std::string SparseData::difference(SparseValues, std::span<const std::int64_t>,
                                            std::span<const __half>, const SparsePromise&) const;
template std::string SparseData::local_difference(int, SparseValues, std::span<const std::int64_t>,
                                                  std::span<const __half>) const;
template std::string SparseData::difference(SparseValues, std::span<const std::int64_t>,
                                            std::span<const __nv_bfloat16>, const SparsePromise&) const;
template std::string SparseData::local_difference(int, SparseValues, std::span<const std::int64_t>,
                                                  std::span<const __nv_bfloat16>) const;
template void SparseData::fill(int, SparseValues, std::span<float>) const;
template void SparseData::fill(int, SparseValues, std::span<__half>) const;
template void SparseData::fill(int, SparseValues, std::span<__nv_bfloat16>) const;

}  // namespace overlap
