// All-reduce, reduce-scatter and reduce: every type, every operation, in place and out of place. Guide,
// "Collective Operations", "Data Types", "In-place Operations".
#include <string>

#include "element_types.hpp"
#include "nccl_test.hpp"

namespace semantics {
namespace {

constexpr ncclRedOp_t kOps[] = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg};

/// The host's reduction. Every partial result is an integer below 128, so that any order gives the same bits
/// in any type.
double reduced(ncclRedOp_t op, const std::vector<double>& values) {
  double result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (op == ncclProd) result *= values[i];
    if (op == ncclMin) result = std::min(result, values[i]);
    if (op == ncclMax) result = std::max(result, values[i]);
    if (op == ncclSum || op == ncclAvg) result += values[i];
  }
  return op == ncclAvg ? result / static_cast<double>(values.size()) : result;
}

/// A rank's element i, before the operation. Products over 8 ranks are at most 64; averages are integers.
double input(ncclRedOp_t op, int rank, std::size_t i, int ranks) {
  const std::size_t mixed = i * 7 + static_cast<std::size_t>(rank) * 3 + i / 11;
  if (op == ncclProd) return mixed % 3 == 0 && rank < 6 ? 2 : 1;
  if (op == ncclAvg) return static_cast<double>(ranks * (mixed % 2));
  return static_cast<double>(mixed % 16);
}

template <class Element>
class ReductionsTest : public GpuTest {
 protected:
  using T = typename Element::T;
  static constexpr auto kType = Element::kNccl;

  static std::vector<T> inputs(ncclRedOp_t op, int rank, std::size_t count, int ranks) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(input(op, rank, i, ranks));
    return values;
  }
  static double expected(ncclRedOp_t op, std::size_t i, int ranks) {
    std::vector<double> values;
    for (int rank = 0; rank < ranks; ++rank) values.push_back(input(op, rank, i, ranks));
    return reduced(op, values);
  }
  static void expect_result(const std::vector<T>& got, ncclRedOp_t op, std::size_t first, int ranks,
                            const std::string& what) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      // 1/3 is not exact in binary; NCCL multiplies by its rounded value.
      const double value = static_cast<double>(got[i]), wanted = expected(op, first + i, ranks);
      const bool rounds = op == ncclAvg && (ranks & (ranks - 1)) != 0;
      ASSERT_NEAR(value, wanted, rounds ? 0.02 * wanted : 0) << what << ", element " << i;
    }
  }
  /// The buffers of a case: on each rank `send` with its inputs, and `other` with values that no test
  /// computes.
  struct Case {
    const Ranks& all;
    const std::vector<Bytes>&send, &other;
    ncclRedOp_t op;
    std::size_t count;
    bool in_place;
    std::string what;
  };
  /// Runs `body(case)` for all numbers of ranks, operations and counts, in place and out of place. Buffers
  /// hold `count` elements for each rank.
  template <class Body>
  void for_all(Body body) {
    for (int ranks : {1, 2, 3, 4, 8}) {
      if (ranks > devices_) break;
      const Ranks all(ranks);
      std::vector<Bytes> send, other;
      for (int rank = 0; rank < ranks; ++rank) {
        for (auto* buffers : {&send, &other}) buffers->emplace_back(rank, kCounts[4] * ranks * sizeof(T));
      }
      for (const ncclRedOp_t op : kOps) {
        // NCCL 2.28 is wrong there: it leaves the last of 4,097 floats unwritten (seen on H200).
        if (ranks == 1 && op == ncclAvg) continue;
        for (const std::size_t count : kCounts) {
          for (const bool in_place : {false, true}) {
            for (int rank = 0; rank < ranks; ++rank) {
              const OnDevice on(rank);
              send[rank].put(inputs(op, rank, count * ranks, ranks));
              other[rank].poison();
            }
            const std::string what = std::to_string(ranks) + " ranks, op " + std::to_string(op) + ", count " +
                                     std::to_string(count) + (in_place ? ", in place" : "");
            body(Case{all, send, other, op, count, in_place, what});
            if (this->HasFatalFailure()) return;
          }
        }
      }
    }
  }
  /// Checks that the send buffer is unchanged.
  static void expect_unchanged(const Bytes& buffer, ncclRedOp_t op, int rank, std::size_t count, int ranks) {
    const auto values = buffer.template get<T>(count);
    const auto before = inputs(op, rank, count, ranks);
    EXPECT_TRUE(count == 0 ||
                std::equal(values.begin(), values.end(), before.begin(),
                           [](T a, T b) { return static_cast<double>(a) == static_cast<double>(b); }))
        << "the send buffer of rank " << rank;
  }
};
TYPED_TEST_SUITE(ReductionsTest, ElementTypes);

TYPED_TEST(ReductionsTest, AllReduce) {
  using T = typename TypeParam::T;
  this->for_all([&](const auto& c) {
    const auto& receive = c.in_place ? c.send : c.other;
    c.all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      const std::byte* from = c.send[rank].data();
      return ncclAllReduce(from, receive[rank].data(), c.count, this->kType, c.op, communicator, stream);
    });
    c.all.synchronize();
    for (int rank = 0; rank < c.all.size(); ++rank) {
      this->expect_result(receive[rank].template get<T>(c.count), c.op, 0, c.all.size(), c.what);
      if (!c.in_place) this->expect_unchanged(c.send[rank], c.op, rank, c.count, c.all.size());
    }
  });
}

TYPED_TEST(ReductionsTest, ReduceScatter) {
  using T = typename TypeParam::T;
  this->for_all([&](const auto& c) {
    const std::size_t total = c.count * c.all.size();
    c.all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      std::byte* from = c.send[rank].data();
      std::byte* to = c.in_place ? from + rank * c.count * sizeof(T) : c.other[rank].data();
      return ncclReduceScatter(from, to, c.count, this->kType, c.op, communicator, stream);
    });
    c.all.synchronize();
    for (int rank = 0; rank < c.all.size(); ++rank) {
      const std::size_t first = rank * c.count;
      std::vector<T> got =
          (c.in_place ? c.send : c.other)[rank].template get<T>(c.in_place ? total : c.count);
      if (c.in_place) got = std::vector<T>(got.begin() + first, got.begin() + first + c.count);
      this->expect_result(got, c.op, first, c.all.size(), c.what);
      if (!c.in_place) this->expect_unchanged(c.send[rank], c.op, rank, total, c.all.size());
    }
  });
}

TYPED_TEST(ReductionsTest, Reduce) {
  using T = typename TypeParam::T;
  this->for_all([&](const auto& c) {
    const int root = static_cast<int>(c.count) % c.all.size();
    const auto& receive = c.in_place ? c.send : c.other;
    c.all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      void* to = rank == root ? receive[rank].data() : nullptr;
      return ncclReduce(c.send[rank].data(), to, c.count, this->kType, c.op, root, communicator, stream);
    });
    c.all.synchronize();
    this->expect_result(receive[root].template get<T>(c.count), c.op, 0, c.all.size(), c.what);
    for (int rank = 0; rank < c.all.size(); ++rank) {
      if (rank == root && c.in_place) continue;
      this->expect_unchanged(c.send[rank], c.op, rank, c.count, c.all.size());
    }
  });
}

using TwoRanksTest = GpuTest;

/// Negative numbers, and overflowing sums: two's complement wraps around.
TEST_F(TwoRanksTest, SignedSumsMinimaAndMaxima) {
  if (devices_ < 2) GTEST_SKIP() << "needs 2 GPUs";
  const Ranks all(2);
  const std::vector<std::int8_t> values[2] = {{-5, 100, -128, 7}, {3, 100, -1, -7}};
  const auto result = [&](ncclRedOp_t op) {
    std::vector<Bytes> buffers;
    for (int rank = 0; rank < 2; ++rank) buffers.emplace_back(rank, values[rank]);
    all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      return ncclAllReduce(buffers[rank].data(), buffers[rank].data(), 4, ncclInt8, op, communicator, stream);
    });
    all.synchronize();
    EXPECT_EQ(buffers[0].get<std::int8_t>(4), buffers[1].get<std::int8_t>(4));
    return buffers[1].get<std::int8_t>(4);
  };
  EXPECT_EQ(result(ncclSum), (std::vector<std::int8_t>{-2, -56, 127, 0}));
  EXPECT_EQ(result(ncclMin), (std::vector<std::int8_t>{-5, 100, -128, -7}));
  EXPECT_EQ(result(ncclMax), (std::vector<std::int8_t>{3, 100, -1, 7}));
  EXPECT_EQ(result(ncclProd), (std::vector<std::int8_t>{-15, 16, -128, -49}));
}

}  // namespace
}  // namespace semantics
