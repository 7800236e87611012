// Device-wide selections: CUB's documentation of DeviceSelect and DeviceRunLengthEncode. Results are compared
// with the standard library's.
#include <thrust/iterator/counting_iterator.h>

#include <cstdint>
#include <cub/cub.cuh>
#include <vector>

#include "cub_test.hpp"

namespace semantics {
namespace {

/// The items that `call` selects; checks that the rest of the output is unchanged.
template <class T, class Call>
void expect_selected(const std::vector<T>& expected, std::int64_t count, Call call) {
  const auto out = room<T>(count, T(77));
  const auto selected = room<int>(1, -1);
  in_two_phases([&](void* temporary, std::size_t& bytes) {
    return call(temporary, bytes, out.data(), selected.data());
  });
  ASSERT_EQ(selected.value(), static_cast<int>(expected.size()));
  std::vector<T> all = expected;
  all.resize(static_cast<std::size_t>(count) + 1, T(77));
  EXPECT_EQ(out.values(), all);
}

template <class FlagType>
void flagged(std::int64_t count) {
  const std::vector<char> flags = random_integers<char>(count, 0, 1);
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < count; ++i) {
    if (flags[i] != 0) positions.push_back(i);
  }
  const auto bytes_of_flags = on_device(flags);
  const auto* flags_in = reinterpret_cast<const FlagType*>(bytes_of_flags.data());
  expect_selected<std::int64_t>(
      positions, count, [&](void* temporary, std::size_t& bytes, std::int64_t* out, int* selected) {
        return cub::DeviceSelect::Flagged(temporary, bytes, thrust::counting_iterator<std::int64_t>(0),
                                          flags_in, out, selected, count);
      });
}

TEST_F(CubTest, SelectsFlaggedItems) {
  for (const std::int64_t count : kSizes) {
    flagged<char>(count);
    flagged<bool>(count);
    flagged<unsigned char>(count);
  }
}

struct IsOdd {
  __host__ __device__ bool operator()(int value) const { return value % 2 != 0; }
};
/// Reads device memory.
struct IsMarked {
  const char* marks;
  __host__ __device__ bool operator()(int position) const { return marks[position] != 0; }
};

TEST_F(CubTest, SelectsByAFunction) {
  for (const std::int64_t count : kSizes) {
    const std::vector<int> values = random_integers<int>(count, 0, 1000);
    const auto in = on_device(values);
    std::vector<int> odd;
    std::copy_if(values.begin(), values.end(), std::back_inserter(odd), IsOdd{});
    expect_selected(odd, count, [&](void* temporary, std::size_t& bytes, int* out, int* selected) {
      return cub::DeviceSelect::If(temporary, bytes, in.data(), out, selected, count, IsOdd{});
    });
  }
}

TEST_F(CubTest, AFunctionMayReadMemory) {
  const auto marks = on_device(std::vector<char>{0, 1, 1, 0, 1});
  expect_selected<int>({1, 2, 4}, 5, [&](void* temporary, std::size_t& bytes, int* out, int* selected) {
    return cub::DeviceSelect::If(temporary, bytes, thrust::make_counting_iterator(0), out, selected, 5,
                                 IsMarked{marks.data()});
  });
}

TEST_F(CubTest, SelectsTheFirstOfEachRun) {
  for (const std::int64_t count : kSizes) {
    const std::vector<std::int64_t> values = random_integers<std::int64_t>(count, 0, 2);
    const auto in = on_device(values);
    std::vector<std::int64_t> unique;
    std::unique_copy(values.begin(), values.end(), std::back_inserter(unique));
    expect_selected(unique, count,
                    [&](void* temporary, std::size_t& bytes, std::int64_t* out, int* selected) {
                      return cub::DeviceSelect::Unique(temporary, bytes, in.data(), out, selected, count);
                    });
  }
}

TEST_F(CubTest, EncodesRuns) {
  for (const std::int64_t count : kSizes) {
    const std::vector<int> values = random_integers<int>(count, 0, 2);
    std::vector<int> unique, lengths;
    for (const int value : values) {
      if (unique.empty() || unique.back() != value) {
        unique.push_back(value);
        lengths.push_back(0);
      }
      ++lengths.back();
    }
    const auto in = on_device(values);
    const auto unique_out = room<int>(count), lengths_out = room<int>(count), runs = room<int>(1, -1);
    in_two_phases([&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRunLengthEncode::Encode(temporary, bytes, in.data(), unique_out.data(),
                                                lengths_out.data(), runs.data(), static_cast<int>(count));
    });
    const auto found = static_cast<std::int64_t>(unique.size());
    ASSERT_EQ(runs.value(), found);
    EXPECT_EQ(first(unique_out, found), unique);
    EXPECT_EQ(first(lengths_out, found), lengths);
  }
}

}  // namespace
}  // namespace semantics
