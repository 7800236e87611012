#include "overlap/data/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "overlap/data/parallel.hpp"
#include "overlap/data/random.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

constexpr std::int64_t kStepsOfAnElement = 4;  // see worth_a_thread(): a random number

void require_fit(const char* function, std::size_t elements, const Shard& shard) {
  const auto inside = [](Range range) { return 0 <= range.begin && range.begin <= range.end; };
  if (!inside(shard.rows) || !inside(shard.columns) || shard.columns.end > shard.width) {
    throw std::invalid_argument(std::string(function) + ": the shard does not lie in its matrix");
  }
  if (static_cast<std::int64_t>(elements) != shard.elements()) {
    throw std::invalid_argument(std::string(function) + ": " + std::to_string(elements) +
                                " elements for a shard of " + std::to_string(shard.elements()));
  }
}

// Fills `out` by calls of `fill(piece, row, column)`: `piece` is part of one row and begins at that row and
// column of the whole matrix.
template <typename T, typename Fill>
void fill_pieces_of_rows(std::span<T> out, const Shard& shard, const Fill& fill) {
  const std::int64_t columns = shard.columns.size();
  const auto fill_share = [&](Range share) {
    for (std::int64_t i = share.begin; i < share.end;) {
      const std::int64_t column = i % columns;
      const std::int64_t count = std::min(columns - column, share.end - i);
      fill(out.subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(count)),
           shard.rows.begin + i / columns, shard.columns.begin + column);
      i += count;
    }
  };
  parallel_shares(shard.elements(), fill_share, worth_a_thread(kStepsOfAnElement));
}

// The number of an element in the whole matrix.
std::uint64_t index_of(const Shard& shard, std::int64_t row, std::int64_t column) {
  return static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(shard.width) +
         static_cast<std::uint64_t>(column);
}

template <typename T>
T small_integer(int value) {
  if constexpr (Floating<T>) {
    return from_float<T>(static_cast<float>(value));
  } else {
    return value;
  }
}

// One stratum of K: row r has its sign in column begin + (offset + step * (r mod width)) mod width. `step`
// and `width` have no common divisor, so `width` rows in a row use all columns. Offset and step are drawn
// anew after each `width` rows. Rows are visited in order, so the next place is found by one addition.
class Stratum {
 public:
  Stratum(std::int64_t number, Range columns)
      : number_(static_cast<std::uint64_t>(number)), begin_(columns.begin), width_(columns.size()) {}

  /// Moves to `row`, from any row; `strata` is their number in all of K.
  void seek(std::int64_t row, std::uint64_t strata, const RandomBits& places) {
    if (width_ == 1) {
      left_ = std::numeric_limits<std::int64_t>::max();
      return;
    }
    const std::int64_t cycle = row / width_;
    left_ = width_ - row % width_;
    const std::uint64_t bits = places.at(static_cast<std::uint64_t>(cycle) * strata + number_);
    const auto width = static_cast<std::uint64_t>(width_);
    step_ = 1 + static_cast<std::int64_t>(below(width - 1, bits));
    while (std::gcd(step_, width_) != 1) step_ = step_ % (width_ - 1) + 1;
    const std::uint64_t offset = below(width, bits << 32);
    const auto steps = static_cast<std::uint64_t>(row % width_);
    place_ = static_cast<std::int64_t>((offset + static_cast<std::uint64_t>(step_) * steps) % width);
  }

  /// Moves to the next row.
  void next(std::int64_t row, std::uint64_t strata, const RandomBits& places) {
    if (--left_ == 0) {
      seek(row, strata, places);
      return;
    }
    place_ += step_;
    if (place_ >= width_) place_ -= width_;
  }

  std::int64_t column() const { return begin_ + place_; }
  std::uint64_t number() const { return number_; }

 private:
  std::uint64_t number_;
  std::int64_t begin_;
  std::int64_t width_;
  std::int64_t step_ = 0;
  std::int64_t place_ = 0;
  std::int64_t left_ = 0;  // rows until offset and step change, the current one included
};

// The strata that have columns in the shard.
std::vector<Stratum> strata_of(const Shard& shard, int strata) {
  std::vector<Stratum> found;
  for (int number = 0; number < strata; ++number) {
    const Range columns = balanced_share(shard.width, strata, number);
    if (columns.begin < shard.columns.end && columns.end > shard.columns.begin) {
      found.emplace_back(number, columns);
    }
  }
  return found;
}

}  // namespace

template <Element T>
void fill_sparse_signs(std::span<T> out, const Shard& shard, std::uint64_t seed) {
  require_fit("fill_sparse_signs", out.size(), shard);
  if (shard.width > std::int64_t{1} << 31) {
    throw UsageError("--k: a matrix of signs has at most 2^31 columns");
  }
  if (out.empty()) return;
  const T signs[] = {small_integer<T>(1), small_integer<T>(-1)};
  const std::int64_t strata = std::min(shard.width, signs_per_row<T>());
  const std::vector<Stratum> shard_strata = strata_of(shard, static_cast<int>(strata));
  const RandomBits places(seed, kPlaces);
  const RandomBits sign_bits(seed, kSigns);
  const auto words_per_row = static_cast<std::uint64_t>((strata + 63) / 64);  // one bit for each sign

  const auto fill_rows = [&](Range share) {
    std::vector<Stratum> at_row = shard_strata;
    const Range rows = {shard.rows.begin + share.begin, shard.rows.begin + share.end};
    for (Stratum& stratum : at_row) stratum.seek(rows.begin, static_cast<std::uint64_t>(strata), places);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::span<T> line =
          out.subspan(static_cast<std::size_t>((row - shard.rows.begin) * shard.columns.size()),
                      static_cast<std::size_t>(shard.columns.size()));
      std::fill(line.begin(), line.end(), small_integer<T>(0));
      std::uint64_t word_number = ~std::uint64_t{0};
      std::uint64_t word = 0;
      for (Stratum& stratum : at_row) {
        if (row > rows.begin) stratum.next(row, static_cast<std::uint64_t>(strata), places);
        if (stratum.number() / 64 != word_number) {
          word_number = stratum.number() / 64;
          word = sign_bits.at(static_cast<std::uint64_t>(row) * words_per_row + word_number);
        }
        const std::int64_t column = stratum.column() - shard.columns.begin;
        if (column < 0 || column >= shard.columns.size()) continue;
        line[static_cast<std::size_t>(column)] = signs[(word >> (stratum.number() % 64)) & 1U];
      }
    }
  };
  const auto signs_of_a_row = static_cast<std::int64_t>(shard_strata.size());
  parallel_shares(shard.rows.size(), fill_rows,
                  worth_a_thread(shard.columns.size() + kStepsOfAnElement * signs_of_a_row));
}

template <Element T>
void fill_ternary(std::span<T> out, const Shard& shard, std::uint64_t seed) {
  require_fit("fill_ternary", out.size(), shard);
  const T values[] = {small_integer<T>(-1), small_integer<T>(0), small_integer<T>(1)};
  const RandomBits random(seed, kTernary);
  fill_pieces_of_rows(out, shard, [&](std::span<T> piece, std::int64_t row, std::int64_t column) {
    std::uint64_t index = index_of(shard, row, column);
    for (T& element : piece) element = values[below(3, random.at(index++))];
  });
}

template <Floating T>
void fill_normal(std::span<T> out, const Shard& shard, std::uint64_t seed, double stddev) {
  require_fit("fill_normal", out.size(), shard);
  if (!(stddev >= 0) || std::isinf(stddev)) {
    throw std::invalid_argument("fill_normal: the standard deviation is not a number from 0 to infinity");
  }
  // In units of 2^-17: heads among 64 coins less 32 (variance 16), and two uniform numbers of 17 bits less
  // their mean (variance 1/6). So all values are integers below 2^23, which a float holds exactly.
  constexpr int kUnitBits = 17;
  constexpr std::uint64_t kMask = (1U << kUnitBits) - 1;
  constexpr double kDeviation = 527011.5923530525;  // sqrt(2^34 (16 + 1/6) - 1/6)
  const auto scale = static_cast<float>(stddev / kDeviation);
  const RandomBits random(seed, kNormal);
  fill_pieces_of_rows(out, shard, [&](std::span<T> piece, std::int64_t row, std::int64_t column) {
    std::uint64_t index = index_of(shard, row, column);
    for (T& element : piece) {
      const std::uint64_t coins = random.at(index++);
      const std::uint64_t uniform = RandomBits::more(coins);
      const int steps = (std::popcount(coins) - 32) * (1 << kUnitBits);
      const int between =
          static_cast<int>((uniform & kMask) + (uniform >> 32 & kMask)) - static_cast<int>(kMask);
      element = from_float<T>(static_cast<float>(steps + between) * scale);
    }
  });
}

template void fill_sparse_signs(std::span<int>, const Shard&, std::uint64_t);
template void fill_sparse_signs(std::span<__half>, const Shard&, std::uint64_t);
template void fill_sparse_signs(std::span<__nv_bfloat16>, const Shard&, std::uint64_t);
template void fill_sparse_signs(std::span<float>, const Shard&, std::uint64_t);

template void fill_ternary(std::span<int>, const Shard&, std::uint64_t);
template void fill_ternary(std::span<__half>, const Shard&, std::uint64_t);
template void fill_ternary(std::span<__nv_bfloat16>, const Shard&, std::uint64_t);
template void fill_ternary(std::span<float>, const Shard&, std::uint64_t);

template void fill_normal(std::span<__half>, const Shard&, std::uint64_t, double);
template void fill_normal(std::span<__nv_bfloat16>, const Shard&, std::uint64_t, double);
template void fill_normal(std::span<float>, const Shard&, std::uint64_t, double);

}  // namespace overlap
