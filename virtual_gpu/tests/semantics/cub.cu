// Device-wide algorithms: CUB's documentation of DeviceRadixSort, DeviceScan and DeviceReduce, and their
// order in a stream. Results are compared with the standard library's.
#include <cuda_fp16.h>

#include <cstdint>
#include <cub/cub.cuh>
#include <limits>
#include <numeric>

#include "capture_test.hpp"
#include "cub_test.hpp"

namespace semantics {
namespace {

// ---- sorts ----------------------------------------------------------------------------------------------

// Few types, because nvcc compiles each sort slowly.
template <class Key>
void sort_keys() {
  using Limits = std::numeric_limits<Key>;
  for (const std::int64_t count : kSizes) {
    std::vector<Key> keys = random_integers<Key>(count, Limits::min(), Limits::max());
    const auto in = on_device(keys);
    const auto out = room<Key>(count);
    in_two_phases([&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, in.data(), out.data(), count);
    });
    EXPECT_EQ(first(in, count), keys) << "the input changed";
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(first(out, count), keys);
  }
}

TEST_F(CubTest, SortsKeys) {
  sort_keys<std::int32_t>();
  sort_keys<std::uint32_t>();
}

/// Keys with their positions: a stable sort leaves the positions of equal keys in order.
template <class Key>
void sort_pairs(std::int64_t count, int begin_bit, int end_bit, bool double_buffer) {
  using Limits = std::numeric_limits<Key>;
  const std::vector<Key> keys = random_integers<Key>(count, Limits::min(), Limits::max());
  std::vector<int> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  const auto keys_in = on_device(keys), keys_out = room<Key>(count);
  const auto values_in = on_device(positions), values_out = room<int>(count);
  cub::DoubleBuffer<Key> both_keys(keys_in.data(), keys_out.data());
  cub::DoubleBuffer<int> both_values(values_in.data(), values_out.data());
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    if (double_buffer) {
      return cub::DeviceRadixSort::SortPairs(temporary, bytes, both_keys, both_values, count, begin_bit,
                                             end_bit);
    }
    return cub::DeviceRadixSort::SortPairs(temporary, bytes, keys_in.data(), keys_out.data(),
                                           values_in.data(), values_out.data(), count, begin_bit, end_bit);
  });
  std::stable_sort(positions.begin(), positions.end(), [&](int a, int b) {
    const auto digits = [&](int i) {  // negative keys sort below others
      using Unsigned = std::make_unsigned_t<Key>;
      Unsigned bits = static_cast<Unsigned>(keys[i]);
      if (std::is_signed_v<Key>) bits ^= Unsigned{1} << (sizeof(Key) * 8 - 1);
      std::uint64_t part = bits >> begin_bit;
      if (end_bit - begin_bit < 64) part &= (std::uint64_t{1} << (end_bit - begin_bit)) - 1;
      return part;
    };
    return digits(a) < digits(b);
  });
  std::vector<Key> sorted;
  for (const int position : positions) sorted.push_back(keys[position]);
  const bool swapped = double_buffer && both_keys.Current() == keys_in.data();
  EXPECT_TRUE(both_values.Current() == (swapped || !double_buffer ? values_in : values_out).data());
  EXPECT_EQ(first(swapped ? keys_in : keys_out, count), sorted);
  EXPECT_EQ(first(swapped ? values_in : values_out, count), positions);
}

template <class Key>
void sort_pairs() {
  constexpr int kBits = sizeof(Key) * 8;
  for (const std::int64_t count : {1, 2, 31, 1000, 5003}) {
    for (const auto& [begin, end] : {std::pair{0, kBits}, {0, 5}, {3, 14}, {kBits - 3, kBits}}) {
      sort_pairs<Key>(count, begin, end, false);
      sort_pairs<Key>(count, begin, end, true);
    }
  }
}

TEST_F(CubTest, SortsPairsStablyByTheBitsAskedFor) {
  sort_pairs<std::int32_t>();
  sort_pairs<std::int64_t>();
}

TEST_F(CubTest, SortsKeysInADoubleBuffer) {
  std::vector<int> keys = random_integers<int>(1000, 0, 99);
  const auto a = on_device(keys), b = room<int>(1000);
  cub::DoubleBuffer<int> both(a.data(), b.data());
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    const cudaError_t error = cub::DeviceRadixSort::SortKeys(temporary, bytes, both, 1000, 0, 7);
    EXPECT_TRUE(temporary != nullptr || both.Current() == a.data()) << "the first phase sorts nothing";
    return error;
  });
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(first(both.Current() == a.data() ? a : b, 1000), keys);
}

// ---- sums -----------------------------------------------------------------------------------------------

template <class In, class Out>
void scan(const std::vector<In>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const auto in = on_device(values);
  const auto exclusive = room<Out>(count), inclusive = room<Out>(count);
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(temporary, bytes, in.data(), exclusive.data(), count);
  });
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(temporary, bytes, in.data(), inclusive.data(), count);
  });
  std::vector<Out> before, until;
  Out total{};
  for (const In value : values) {
    before.push_back(total);
    total = static_cast<Out>(total + value);
    until.push_back(total);
  }
  EXPECT_EQ(first(exclusive, count), before);
  EXPECT_EQ(first(inclusive, count), until);
}

TEST_F(CubTest, ScansAddWhatComesBefore) {
  for (const std::int64_t count : kSizes) {
    scan<int, int>(random_integers<int>(count, -5, 100));
    scan<std::int64_t, std::int64_t>(random_integers<std::int64_t>(count, 0, std::int64_t{1} << 40));
    scan<char, int>(random_integers<char>(count, 0, 1));  // sums exceed the range of char
  }
}

TEST_F(CubTest, AScanMayBeInPlace) {
  const auto data = on_device(std::vector<int>(5000, 2));
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(temporary, bytes, data.data(), data.data(), 5000);
  });
  const std::vector<int> sums = first(data, 5000);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(sums[i], 2 * i);
}

// ---- reductions -----------------------------------------------------------------------------------------

template <class T, class Out = T>
void reduce(const std::vector<T>& values, Out sum, T least, T most) {
  const auto count = static_cast<std::int64_t>(values.size());
  const auto in = on_device(values);
  const auto total = room<Out>(1);
  const auto extremes = room<T>(2);
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(temporary, bytes, in.data(), total.data(), count);
  });
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceReduce::Min(temporary, bytes, in.data(), extremes.data(), count);
  });
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceReduce::Max(temporary, bytes, in.data(), extremes.data() + 1, count);
  });
  EXPECT_EQ(total.value(), sum) << count;
  EXPECT_TRUE(extremes.values()[0] == least) << count;
  EXPECT_TRUE(extremes.values()[1] == most) << count;
}

TEST_F(CubTest, ReducesToSumMinimumAndMaximum) {
  for (const std::int64_t count : kSizes) {
    if (count == 0) continue;
    const std::vector<int> values = random_integers<int>(count, -1000, 1000);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto sum = std::accumulate(values.begin(), values.end(), std::int64_t{0});
    reduce<int, std::int64_t>(values, sum, *least, *most);
    const std::vector<float> floats(values.begin(), values.end());  // their sums are exact
    reduce<float>(floats, static_cast<float>(sum), static_cast<float>(*least), static_cast<float>(*most));
  }
}

TEST_F(CubTest, ReducesHalves) {
  std::vector<__half> values(1000, __float2half(1.0f));
  values[7] = __float2half(-3.0f);
  values[999] = __float2half(5.0f);
  const auto in = on_device(values);
  const auto out = room<__half>(3);
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(temporary, bytes, in.data(), out.data(), 1000);
  });
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceReduce::Min(temporary, bytes, in.data(), out.data() + 1, 1000);
  });
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceReduce::Max(temporary, bytes, in.data(), out.data() + 2, 1000);
  });
  std::vector<float> results;
  for (const __half& value : first(out, 3)) results.push_back(__half2float(value));
  EXPECT_EQ(results, (std::vector<float>{1000, -3, 5}));
}

TEST_F(CubTest, ReducesNothingToTheInitialValue) {
  reduce<int>({}, 0, std::numeric_limits<int>::max(), std::numeric_limits<int>::lowest());
}

// ---- order and phases -----------------------------------------------------------------------------------

TEST_F(CubTest, WorksInTheOrderOfItsStream) {
  const Stream stream;
  const auto in = room<int>(1, 1), out = room<int>(1, 0), copied = room<int>(1, 0);
  std::size_t bytes = 0;
  CUDA_OK(cub::DeviceReduce::Sum(nullptr, bytes, in.data(), out.data(), 1, stream));
  const DeviceArray<char> temporary(bytes);
  set_late<<<1, 1, 0, stream>>>(in.data(), 5);
  CUDA_OK(cub::DeviceReduce::Sum(temporary.data(), bytes, in.data(), out.data(), 1, stream));
  set<<<1, 1, 0, stream>>>(in.data(), 9);  // too late to change the sum
  copy_one<<<1, 1, 0, stream>>>(copied.data(), out.data());
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(copied.value(), 5);
}

TEST_F(CubTest, TheFirstPhaseDoesNothing) {
  const auto in = room<int>(4, 1), out = room<int>(4, 7);
  std::size_t bytes = 0;
  CUDA_OK(cub::DeviceScan::InclusiveSum(nullptr, bytes, in.data(), out.data(), 4));
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(out.values(), std::vector<int>(5, 7));
}

TEST_F(CubTest, ACapturedCallRunsWithEachLaunch) {
  const Stream stream;
  const auto in = room<int>(3, 2), out = room<int>(1, 0);
  std::size_t bytes = 0;
  CUDA_OK(cub::DeviceReduce::Sum(nullptr, bytes, in.data(), out.data(), 3, stream));
  const DeviceArray<char> temporary(bytes);
  const auto sum = [&] {
    require(cub::DeviceReduce::Sum(temporary.data(), bytes, in.data(), out.data(), 3, stream));
  };
  const Graph graph(stream, sum, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(out.value(), 0);
  const Executable executable(graph);
  for (const int first : {2, 10}) {
    set<<<1, 1, 0, stream>>>(in.data(), first);
    executable.run(stream);
    EXPECT_EQ(out.value(), first + 4);
  }
}

TEST_F(CubTest, TooLittleTemporaryStorageIsRefused) {
  const auto in = room<int>(100'000, 1), out = room<int>(100'000, 7);
  std::size_t bytes = 0;
  CUDA_OK(cub::DeviceScan::InclusiveSum(nullptr, bytes, in.data(), out.data(), 100'000));
  const DeviceArray<char> temporary(bytes);
  std::size_t little = 1;
  EXPECT_EQ(cub::DeviceScan::InclusiveSum(temporary.data(), little, in.data(), out.data(), 100'000),
            cudaErrorInvalidValue);
  cudaGetLastError();  // some versions of CUB leave an error
  EXPECT_EQ(out.values(), std::vector<int>(100'001, 7));
}

}  // namespace
}  // namespace semantics
