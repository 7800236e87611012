#include "nccl_reduce.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "half_bits.hpp"

namespace vgpu::nccl {
namespace {

// How elements lie in memory, and what they are computed in.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static Value load(Stored stored) { return stored; }
  static Stored store(Value value) { return value; }
};
struct F16 {
  using Stored = std::uint16_t;
  using Value = float;
  static Value load(Stored stored) { return float_from_f16(stored); }
  static Stored store(Value value) { return f16_from_float(value); }
};
struct Bf16 {
  using Stored = std::uint16_t;
  using Value = float;
  static Value load(Stored stored) { return float_from_bf16(stored); }
  static Stored store(Value value) { return bf16_from_float(value); }
};

template <class T>
T combine(ncclRedOp_t op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case ncclProd:
        return a * b;
      case ncclMax:
        return std::fmax(a, b);  // of a NaN and a number: the number
      case ncclMin:
        return std::fmin(a, b);
      default:
        return a + b;
    }
  } else {
    using Wrapping = std::make_unsigned_t<T>;  // signed overflow is undefined in C++
    switch (op) {
      case ncclProd:
        return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
      case ncclMax:
        return a < b ? b : a;
      case ncclMin:
        return b < a ? b : a;
      default:
        return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    }
  }
}

template <class Element>
std::vector<std::byte> reduce_as(const std::vector<const std::byte*>& inputs, std::size_t count,
                                 ncclRedOp_t op) {
  using Stored = typename Element::Stored;
  using Value = typename Element::Value;
  const auto ranks = static_cast<Value>(inputs.size());
  const auto load = [&](const std::byte* input, std::size_t i) {
    Stored stored;
    std::memcpy(&stored, input + i * sizeof(Stored), sizeof(Stored));
    Value value = Element::load(stored);
    if constexpr (std::is_floating_point_v<Value>) {
      if (op == ncclAvg) value *= Value{1} / ranks;
    }
    return value;
  };
  std::vector<std::byte> result(count * sizeof(Stored));
  for (std::size_t i = 0; i < count; ++i) {
    Value sum = load(inputs[0], i);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      sum = combine<Value>(op, sum, load(inputs[rank], i));
    }
    if constexpr (!std::is_floating_point_v<Value>) {
      if (op == ncclAvg) sum = static_cast<Value>(sum / ranks);
    }
    const Stored stored = Element::store(sum);
    std::memcpy(result.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return result;
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

std::vector<std::byte> reduce(const std::vector<const std::byte*>& inputs, std::size_t count,
                              ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8:
      return reduce_as<Plain<std::int8_t>>(inputs, count, op);
    case ncclUint8:
      return reduce_as<Plain<std::uint8_t>>(inputs, count, op);
    case ncclInt32:
      return reduce_as<Plain<std::int32_t>>(inputs, count, op);
    case ncclUint32:
      return reduce_as<Plain<std::uint32_t>>(inputs, count, op);
    case ncclInt64:
      return reduce_as<Plain<std::int64_t>>(inputs, count, op);
    case ncclUint64:
      return reduce_as<Plain<std::uint64_t>>(inputs, count, op);
    case ncclFloat16:
      return reduce_as<F16>(inputs, count, op);
    case ncclFloat32:
      return reduce_as<Plain<float>>(inputs, count, op);
    case ncclFloat64:
      return reduce_as<Plain<double>>(inputs, count, op);
    case ncclBfloat16:
      return reduce_as<Bf16>(inputs, count, op);
  }
  return {};
}

}  // namespace vgpu::nccl
