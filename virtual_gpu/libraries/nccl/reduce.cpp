#include "libraries/nccl/reduce.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace vgpu::nccl {
namespace {

/// What elements of type T are computed in.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, T>;

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
  using Value = Computed<T>;
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

/// Calls `function` with a zero of the elements' C++ type. Returns {} for a value that is no data type.
template <class Function>
std::invoke_result_t<Function, int> with_element(ncclDataType_t type, Function function) {
  switch (type) {
    case ncclInt8:
      return function(std::int8_t{});
    case ncclUint8:
      return function(std::uint8_t{});
    case ncclInt32:
      return function(std::int32_t{});
    case ncclUint32:
      return function(std::uint32_t{});
    case ncclInt64:
      return function(std::int64_t{});
    case ncclUint64:
      return function(std::uint64_t{});
    case ncclFloat16:
      return function(__half{});
    case ncclFloat32:
      return function(float{});
    case ncclFloat64:
      return function(double{});
    case ncclBfloat16:
      return function(__nv_bfloat16{});
  }
  return {};
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  return with_element(type, [](auto element) { return sizeof element; });
}

std::vector<std::byte> reduce(const std::vector<const std::byte*>& inputs, std::size_t count,
                              ncclDataType_t type, ncclRedOp_t op) {
  return with_element(type, [&](auto element) { return reduce_as<decltype(element)>(inputs, count, op); });
}

}  // namespace vgpu::nccl
