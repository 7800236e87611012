// Random bits by seed and index: the same on every platform, in any order, from any thread.
#pragma once

#include <cstdint>

namespace overlap {

/// What random bits are for: one seed serves several purposes, whose bits must not be the same.
enum Purpose : std::uint64_t {
  kIntegers,
  kTernary,
  kNormal,
  kPlaces,
  kSigns,
  kSparseRows,
  kSparseValues,
  kFreivalds /* and all after */
};

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Its state only
/// counts, in steps of kStep, so that word i can be made without the words before it.
class RandomBits {
 public:
  /// Neighbouring seeds, and different purposes of one seed, begin far apart.
  explicit RandomBits(std::uint64_t seed, std::uint64_t purpose = kIntegers)
      : start_(mix(seed + kStep + mix(purpose))) {}

  /// 64 random bits.
  std::uint64_t at(std::uint64_t index) const { return mix(start_ + (index + 1) * kStep); }

  /// 64 more bits that depend on nothing but `bits`, yet pass for independent of them.
  static std::uint64_t more(std::uint64_t bits) { return mix(bits + kStep); }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;

  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  std::uint64_t start_;
};

/// One of 0 ... count - 1 (count at most 2^32), from the upper 32 bits: each is off its share by at most
/// 2^-32.
inline std::uint64_t below(std::uint64_t count, std::uint64_t bits) { return ((bits >> 32) * count) >> 32; }

}  // namespace overlap
