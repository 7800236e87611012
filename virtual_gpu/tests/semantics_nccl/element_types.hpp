// NCCL's data types on the host, for small integers, which all types represent exactly.
#pragma once

#include <gtest/gtest.h>
#include <nccl.h>

#include <bit>
#include <cstdint>

namespace semantics {

/// The 16 bits of a number in a format with that many mantissa bits. Only for integers that the format
/// represents exactly.
template <int kFraction, int kBias>
struct Small {
  std::uint16_t bits = 0;
  Small() = default;
  explicit Small(double value) {
    const auto wide = std::bit_cast<std::uint64_t>(value);
    if (wide << 1 == 0) return;
    const auto exponent = static_cast<int>(wide >> 52 & 0x7ff) - 1023 + kBias;
    bits = static_cast<std::uint16_t>(wide >> 63 << 15 | static_cast<std::uint64_t>(exponent) << kFraction |
                                      (wide >> (52 - kFraction) & ((1u << kFraction) - 1)));
  }
  explicit operator double() const {
    if ((bits & 0x7fff) == 0) return 0;
    const std::uint64_t exponent = (bits & 0x7fff) >> kFraction;
    const std::uint64_t fraction = bits & ((1u << kFraction) - 1);
    return std::bit_cast<double>(std::uint64_t{bits} >> 15 << 63 | (exponent - kBias + 1023) << 52 |
                                 fraction << (52 - kFraction));
  }
};
using F16 = Small<10, 15>;
using Bf16 = Small<7, 127>;

template <class Stored, ncclDataType_t kType>
struct Element {
  using T = Stored;
  static constexpr ncclDataType_t kNccl = kType;
};
using ElementTypes = testing::Types<Element<std::int8_t, ncclInt8>, Element<std::uint8_t, ncclUint8>,
                                    Element<std::int32_t, ncclInt32>, Element<std::uint32_t, ncclUint32>,
                                    Element<std::int64_t, ncclInt64>, Element<std::uint64_t, ncclUint64>,
                                    Element<F16, ncclFloat16>, Element<float, ncclFloat32>,
                                    Element<double, ncclFloat64>, Element<Bf16, ncclBfloat16>>;

}  // namespace semantics
