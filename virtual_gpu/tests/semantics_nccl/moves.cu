// Collectives, sends and receives that only move data. Guide, "Collective Operations", "Point-to-point
// communication", "In-place Operations".
#include "nccl_test.hpp"

namespace semantics {
namespace {

class MovesTest : public RanksTest {
 protected:
  /// On each rank a buffer of `count` numbers that no test sends.
  std::vector<Bytes> buffers(std::size_t count) const {
    std::vector<Bytes> all;
    for (int rank = 0; rank < ranks(); ++rank) all.emplace_back(rank, std::vector<int>(count, -1));
    return all;
  }
  /// On each rank a buffer with its labels.
  std::vector<Bytes> labelled(std::size_t count) const {
    std::vector<Bytes> all;
    for (int rank = 0; rank < ranks(); ++rank) all.emplace_back(rank, labels(rank, count));
    return all;
  }
  /// The first `length(rank)` labels of each rank, one rank after another.
  template <class Length>
  std::vector<int> all_labels(Length length) const {
    std::vector<int> all;
    for (int rank = 0; rank < ranks(); ++rank) {
      for (int value : labels(rank, length(rank))) all.push_back(value);
    }
    return all;
  }
};
FOR_ALL_RANKS(MovesTest);

TEST_P(MovesTest, AllGather) {
  const Ranks all(ranks());
  for (const std::size_t count : kCounts) {
    const auto send = labelled(count), receive = buffers(count * ranks() + 1);
    all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      return ncclAllGather(send[rank].data(), receive[rank].data(), count, ncclInt32, communicator, stream);
    });
    all.synchronize();
    std::vector<int> expected = all_labels([count](int) { return count; });
    expected.push_back(-1);  // the rest is unchanged
    for (int rank = 0; rank < ranks(); ++rank) {
      EXPECT_EQ(receive[rank].get<int>(expected.size()), expected) << "rank " << rank << ", count " << count;
      EXPECT_EQ(send[rank].get<int>(count), labels(rank, count));
    }
  }
}

TEST_P(MovesTest, AllGatherInPlace) {
  const Ranks all(ranks());
  for (const std::size_t count : kCounts) {
    std::vector<Bytes> receive;
    std::vector<int> expected;
    for (int rank = 0; rank < ranks(); ++rank) {
      std::vector<int> values(count * ranks(), -1);
      const auto own = labels(rank, count);
      std::copy(own.begin(), own.end(), values.begin() + rank * count);
      receive.emplace_back(rank, values);
      expected.insert(expected.end(), own.begin(), own.end());
    }
    all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      const std::byte* own = receive[rank].data() + rank * count * sizeof(int);
      return ncclAllGather(own, receive[rank].data(), count, ncclInt32, communicator, stream);
    });
    all.synchronize();
    for (int rank = 0; rank < ranks(); ++rank) {
      EXPECT_EQ(receive[rank].get<int>(expected.size()), expected) << "rank " << rank << ", count " << count;
    }
  }
}

TEST_P(MovesTest, BroadcastFromEachRoot) {
  const Ranks all(ranks());
  for (int root = 0; root < ranks(); ++root) {
    for (const std::size_t count : kCounts) {
      for (const bool in_place : {false, true}) {
        const auto send = labelled(count), other = buffers(count);
        const auto& receive = in_place ? send : other;
        all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
          return ncclBroadcast(send[rank].data(), receive[rank].data(), count, ncclInt32, root, communicator,
                               stream);
        });
        all.synchronize();
        for (int rank = 0; rank < ranks(); ++rank) {
          EXPECT_EQ(receive[rank].get<int>(count), labels(root, count))
              << "rank " << rank << ", root " << root;
          const int sender = in_place ? root : rank;
          EXPECT_EQ(send[rank].get<int>(count), labels(sender, count)) << "the send buffer";
        }
      }
    }
  }
}

// "recvbuff is the only buffer of the other ranks": their sendbuff is not read.
TEST_P(MovesTest, OnlyTheRootOfABroadcastNeedsASendBuffer) {
  const Ranks all(ranks());
  const auto send = labelled(10), receive = buffers(10);
  all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    const void* from = rank == 0 ? send[0].data() : nullptr;
    return ncclBroadcast(from, receive[rank].data(), 10, ncclInt32, 0, communicator, stream);
  });
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) EXPECT_EQ(receive[rank].get<int>(10), labels(0, 10));
}

// Every rank sends to the next rank and receives from the previous one; a single rank, from itself.
TEST_P(MovesTest, RingOfSendsAndReceives) {
  const Ranks all(ranks());
  for (const std::size_t count : kCounts) {
    const auto send = labelled(count), receive = buffers(count);
    all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      const int next = (rank + 1) % ranks(), previous = (rank + ranks() - 1) % ranks();
      require(ncclSend(send[rank].data(), count, ncclInt32, next, communicator, stream));
      return ncclRecv(receive[rank].data(), count, ncclInt32, previous, communicator, stream);
    });
    all.synchronize();
    for (int rank = 0; rank < ranks(); ++rank) {
      const int previous = (rank + ranks() - 1) % ranks();
      EXPECT_EQ(receive[rank].get<int>(count), labels(previous, count)) << "rank " << rank;
    }
  }
}

// Rank r's block for rank s is r * 100 + s elements long.
TEST_P(MovesTest, UnevenAllToAllBySendsAndReceives) {
  const Ranks all(ranks());
  constexpr std::size_t kRoom = 1000;
  const auto length = [](int from, int to) { return static_cast<std::size_t>(from * 100 + to); };
  const auto send = labelled(kRoom * ranks()), receive = buffers(kRoom * ranks());
  all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    for (int peer = 0; peer < ranks(); ++peer) {
      const std::size_t offset = peer * kRoom * sizeof(int);
      require(
          ncclSend(send[rank].data() + offset, length(rank, peer), ncclInt32, peer, communicator, stream));
      require(
          ncclRecv(receive[rank].data() + offset, length(peer, rank), ncclInt32, peer, communicator, stream));
    }
    return ncclSuccess;
  });
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto got = receive[rank].get<int>(kRoom * ranks());
    for (int peer = 0; peer < ranks(); ++peer) {
      for (std::size_t i = 0; i < kRoom; ++i) {
        const int expected = i < length(peer, rank) ? label(peer, rank * kRoom + i) : -1;
        ASSERT_EQ(got[peer * kRoom + i], expected)
            << "rank " << rank << " from " << peer << ", element " << i;
      }
    }
  }
}

// Messages between two ranks arrive in the order in which they were sent.
TEST_P(MovesTest, SendsToOneRankKeepTheirOrder) {
  if (ranks() != 2) GTEST_SKIP() << "between two ranks";
  const Ranks all(2);
  const auto send = labelled(9), receive = buffers(9);
  constexpr std::size_t kThree = 3 * sizeof(int);
  for (const bool grouped : {false, true}) {
    require(ncclGroupStart());
    for (int i = 0; i < 3; ++i) {
      require(ncclSend(send[0].data() + i * kThree, 3, ncclInt32, 1, all.communicator(0), all.stream(0)));
      require(ncclRecv(receive[1].data() + (2 - i) * kThree, 3, ncclInt32, 0, all.communicator(1),
                       all.stream(1)));
      if (!grouped) {
        require(ncclGroupEnd());
        require(ncclGroupStart());
      }
    }
    require(ncclGroupEnd());
    all.synchronize();
    EXPECT_EQ(receive[1].get<int>(9), (std::vector<int>{6, 7, 8, 3, 4, 5, 0, 1, 2}));
  }
}

// Ranks hold different amounts: one broadcast each, all in one group.
TEST_P(MovesTest, UnevenAllGatherByBroadcasts) {
  const Ranks all(ranks());
  const auto length = [](int rank) { return static_cast<std::size_t>(rank == 2 ? 0 : 50 + 7 * rank); };
  std::vector<std::size_t> first(ranks() + 1, 0);
  for (int rank = 0; rank < ranks(); ++rank) first[rank + 1] = first[rank] + length(rank);
  const auto send = labelled(1000), receive = buffers(first.back());
  all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    for (int root = 0; root < ranks(); ++root) {
      std::byte* to = receive[rank].data() + first[root] * sizeof(int);
      require(ncclBroadcast(send[rank].data(), to, length(root), ncclInt32, root, communicator, stream));
    }
    return ncclSuccess;
  });
  all.synchronize();
  const std::vector<int> expected = all_labels(length);
  for (int rank = 0; rank < ranks(); ++rank)
    EXPECT_EQ(receive[rank].get<int>(first.back()), expected) << rank;
}

}  // namespace
}  // namespace semantics
