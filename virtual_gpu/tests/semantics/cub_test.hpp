// Shared by the tests of CUB's device-wide algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "gpu_test.hpp"

namespace semantics {

inline constexpr std::int64_t kSizes[] = {0, 1, 2, 31, 1000, 4097, 20'003};

/// Device memory for `count` items, at least one.
template <class T>
DeviceArray<T> room(std::int64_t count, T value = T{}) {
  return DeviceArray<T>(static_cast<std::size_t>(count) + 1, value);
}
/// Device memory with a copy of the items.
template <class T>
DeviceArray<T> on_device(std::vector<T> values) {
  values.push_back(T{});
  return DeviceArray<T>(values);
}
/// Its first `count` items.
template <class T>
std::vector<T> first(const DeviceArray<T>& array, std::int64_t count) {
  std::vector<T> values = array.values();
  values.resize(static_cast<std::size_t>(count));
  return values;
}

/// `count` numbers between `least` and `most`, both included.
template <class T>
std::vector<T> random_integers(std::int64_t count, T least, T most, unsigned int seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  const auto range = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = range == 0 ? random() : random() % range;
    values.push_back(static_cast<T>(static_cast<std::uint64_t>(least) + offset));
  }
  return values;
}

/// Runs both phases of `call(temporary, bytes)`.
template <class Call>
void in_two_phases(Call call) {
  std::size_t bytes = 0;
  require(call(nullptr, bytes));
  ASSERT_GT(bytes, 0u);
  const DeviceArray<char> temporary(bytes);
  require(call(temporary.data(), bytes));
  require(cudaDeviceSynchronize());
}

using CubTest = GpuTest;

}  // namespace semantics
