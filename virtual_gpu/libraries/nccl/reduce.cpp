#include "libraries/nccl/reduce.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace vgpu::nccl {
namespace {

/// What elements of type T are computed in.
template <class T>
struct Computed {
  using Type = T;
};
template <>
struct Computed<__half> {
  using Type = float;
};
template <>
struct Computed<__nv_bfloat16> {
  using Type = float;
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

template <class T>
std::vector<std::byte> reduce_as(const std::vector<const std::byte*>& inputs, std::size_t count,
                                 ncclRedOp_t op) {
  using Value = typename Computed<T>::Type;
  const auto ranks = static_cast<Value>(inputs.size());
  const auto load = [&](const std::byte* input, std::size_t i) {
    T stored;
    std::memcpy(&stored, input + i * sizeof(T), sizeof(T));
    auto value = static_cast<Value>(stored);
    if constexpr (std::is_floating_point_v<Value>) {
      if (op == ncclAvg) value *= Value{1} / ranks;
    }
    return value;
  };
  std::vector<std::byte> result(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    Value sum = load(inputs[0], i);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      sum = combine<Value>(op, sum, load(inputs[rank], i));
    }
    if constexpr (!std::is_floating_point_v<Value>) {
      if (op == ncclAvg) sum = static_cast<Value>(sum / ranks);
    }
    const T stored = static_cast<T>(sum);
    std::memcpy(result.data() + i * sizeof(T), &stored, sizeof(T));
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
      return reduce_as<std::int8_t>(inputs, count, op);
    case ncclUint8:
      return reduce_as<std::uint8_t>(inputs, count, op);
    case ncclInt32:
      return reduce_as<std::int32_t>(inputs, count, op);
    case ncclUint32:
      return reduce_as<std::uint32_t>(inputs, count, op);
    case ncclInt64:
      return reduce_as<std::int64_t>(inputs, count, op);
    case ncclUint64:
      return reduce_as<std::uint64_t>(inputs, count, op);
    case ncclFloat16:
      return reduce_as<__half>(inputs, count, op);
    case ncclFloat32:
      return reduce_as<float>(inputs, count, op);
    case ncclFloat64:
      return reduce_as<double>(inputs, count, op);
    case ncclBfloat16:
      return reduce_as<__nv_bfloat16>(inputs, count, op);
  }
  return {};
}

}  // namespace vgpu::nccl
