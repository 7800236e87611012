// What chapter 21's tests share: all-reduces alone, call after call, with every element compared.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "dense_run.hpp"
#include "overlap/bench/device_data.hpp"

namespace overlap::small_all_reduce {

/// Summands whose sums are exact in all types, and differ from call to call; -0.0 among them.
template <Floating T>
std::vector<T> summands(int rank, std::int64_t elements, int call) {
  std::vector<T> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto number = static_cast<int>((i * 7 + static_cast<std::size_t>(rank * 13 + call * 5)) % 9);
    values[i] = from_double<T>(number == 8 ? -0.0 : number - 3);
  }
  return values;
}

template <Floating T>
std::vector<double> right_sums(int ranks, std::int64_t elements, int call) {
  std::vector<double> sums(static_cast<std::size_t>(elements), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<T> values = summands<T>(rank, elements, call);
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += value_of(values[i]);
  }
  return sums;
}

/// x and sum of a rank, and kBehind elements after the sum, which must not change. `offset`: elements by
/// which both are shifted from an address that is aligned for vectors.
template <Floating T>
class Message {
 public:
  static constexpr std::size_t kBehind = 20;

  Message(Rank& rank, std::int64_t elements, std::size_t offset = 0)
      : rank_(rank),
        elements_(elements),
        offset_(offset),
        x_(rank.device(), static_cast<std::size_t>(elements) + offset),
        sum_(rank.device(), static_cast<std::size_t>(elements) + offset + kBehind) {}

  const T* x() const { return x_.data() + offset_; }
  T* sum() const { return sum_.data() + offset_; }

  void write(int call) {
    call_ = call;
    const std::vector<T> values = summands<T>(rank_.id(), elements_, call);
    CUDA_CHECK(cudaMemcpyAsync(x_.data() + offset_, values.data(), values.size() * sizeof(T),
                               cudaMemcpyHostToDevice, rank_.stream()));
    fill_with_nan(rank_, sum_);
  }
  void expect_right(const std::string& what) {
    const std::vector<T> found = download(rank_, sum_.data(), static_cast<std::int64_t>(sum_.size()));
    const std::vector<double> right = right_sums<T>(rank_.size(), elements_, call_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t at = i - offset_;
      if (i >= offset_ && at < right.size()) {
        ASSERT_EQ(value_of(found[i]), right[at]) << what << ": element " << at << " of " << right.size();
      } else {
        ASSERT_TRUE(is_nan(found[i])) << what << ": something was written " << at << " elements from the sum";
      }
    }
  }

 private:
  Rank& rank_;
  std::int64_t elements_;
  std::size_t offset_;
  int call_ = 0;
  DeviceBuffer<T> x_, sum_;
};

template <typename AllReduce, Floating T>
void expect_sums(int ranks, const std::vector<std::int64_t>& lengths, int calls, std::size_t offset = 0) {
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    for (const std::int64_t elements : lengths) {
      AllReduce all_reduce(rank, elements);
      std::vector<std::unique_ptr<Message<T>>> messages;
      for (int call = 0; call < calls; ++call) {
        messages.push_back(std::make_unique<Message<T>>(rank, elements, offset));
        messages.back()->write(call);
      }
      rank.barrier();
      for (const auto& message : messages) all_reduce.run(message->x(), message->sum(), rank.stream());
      rank.synchronize(rank.stream());
      rank.barrier();
      for (int call = 0; call < calls; ++call)
        messages[static_cast<std::size_t>(call)]->expect_right("call " + std::to_string(call));
    }
  });
}

/// All kinds of all-reduce; the parameter is the number of ranks.
class AllReduces : public testing::TestWithParam<int> {
 protected:
  template <Floating T>
  void expect_all_right(const std::vector<std::int64_t>& lengths, int calls, std::size_t offset = 0) {
    expect_sums<OneShot<T, Reuse::kExitBarrier>, T>(GetParam(), lengths, calls, offset);
    expect_sums<OneShot<T>, T>(GetParam(), lengths, calls, offset);
    expect_sums<TwoShot<T>, T>(GetParam(), lengths, calls, offset);
    expect_sums<FlagInData<T>, T>(GetParam(), lengths, calls, offset);
    expect_sums<WordIsFlag<T>, T>(GetParam(), lengths, calls, offset);
  }
};

}  // namespace overlap::small_all_reduce
