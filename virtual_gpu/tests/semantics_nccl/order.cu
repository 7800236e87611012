// The order of NCCL's calls with other work, and with each other in groups. Guide, "CUDA Stream Semantics",
// "Group Calls", "Using multiple NCCL communicators concurrently".
#include "nccl_test.hpp"

namespace semantics {
namespace {

constexpr int kCount = 1000;

/// data[i] = data[i] * factor + term, after a delay.
__global__ void change(int* data, int factor, int term, bool late) {
  if (late && threadIdx.x == 0) spin();
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += static_cast<int>(blockDim.x)) {
    data[i] = data[i] * factor + term;
  }
}
void enqueue_change(int rank, std::byte* data, int factor, int term, bool late, cudaStream_t stream) {
  const OnDevice on(rank);
  change<<<1, 128, 0, stream>>>(reinterpret_cast<int*>(data), factor, term, late);
  require(cudaGetLastError());
}

class OrderTest : public RanksTest {
 protected:
  std::vector<Bytes> buffers(int value = 1) const {
    std::vector<Bytes> all;
    for (int rank = 0; rank < ranks(); ++rank) all.emplace_back(rank, std::vector<int>(kCount, value));
    return all;
  }
  /// Sums the buffers over all ranks, in place.
  static void all_reduce(const Ranks& all, const std::vector<Bytes>& data) {
    all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      std::byte* place = data[rank].data();
      return ncclAllReduce(place, place, kCount, ncclInt32, ncclSum, communicator, stream);
    });
  }
  static void expect_all(const Bytes& buffer, int value, int rank) {
    EXPECT_EQ(buffer.get<int>(kCount), std::vector<int>(kCount, value)) << "rank " << rank;
  }
};
FOR_ALL_RANKS(OrderTest);

// Each rank has its own amount of work before, between and after the calls.
TEST_P(OrderTest, CallsComeBetweenTheStreamsOtherWork) {
  const Ranks all(ranks());
  const auto data = buffers(0), copies = buffers(0);
  int sum = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    enqueue_change(rank, data[rank].data(), 1, rank + 1, rank % 2 == 0, all.stream(rank));
    sum += rank + 1;
  }
  all_reduce(all, data);
  for (int rank = 0; rank < ranks(); ++rank) {
    for (int i = 0; i < rank; ++i) enqueue_change(rank, data[rank].data(), 1, 1, i == 0, all.stream(rank));
    sum += rank;
  }
  // Now rank r has sum_of_ranks + r.
  const int first_sum = ranks() * (ranks() + 1) / 2, offsets = ranks() * (ranks() - 1) / 2;
  all_reduce(all, data);
  for (int rank = 0; rank < ranks(); ++rank) {
    const OnDevice on(rank);
    require(cudaMemcpyAsync(copies[rank].data(), data[rank].data(), data[rank].size(),
                            cudaMemcpyDeviceToDevice, all.stream(rank)));
    enqueue_change(rank, data[rank].data(), 0, -1, false, all.stream(rank));
  }
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) {
    expect_all(copies[rank], ranks() * first_sum + offsets, rank);
    expect_all(data[rank], -1, rank);
  }
}

// No rank has its sum before the last rank has arrived.
TEST_P(OrderTest, AnAllReduceWaitsForAllRanks) {
  const Ranks all(ranks());
  const auto data = buffers();
  all_reduce(all, data);  // the first call may need more than the streams
  all.synchronize();
  {
    Gate gate;
    const OnDevice on(ranks() - 1);
    gate.close(all.stream(ranks() - 1));
    all_reduce(all, data);
    for (int i = 0; i < 100; ++i) {
      for (int rank = 0; rank < ranks(); ++rank)
        ASSERT_EQ(cudaStreamQuery(all.stream(rank)), cudaErrorNotReady);
    }
  }
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) expect_all(data[rank], ranks() * ranks(), rank);
}

TEST_P(OrderTest, ABroadcastWaitsForItsRoot) {
  const Ranks all(ranks());
  const auto data = buffers();
  const auto broadcast = [&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    return ncclBroadcast(data[rank].data(), data[rank].data(), kCount, ncclInt32, 0, communicator, stream);
  };
  all.together(broadcast);
  all.synchronize();
  {
    Gate gate;
    gate.close(all.stream(0));
    enqueue_change(0, data[0].data(), 1, 41, false, all.stream(0));
    all.together(broadcast);
    for (int rank = 0; rank < ranks(); ++rank)
      ASSERT_EQ(cudaStreamQuery(all.stream(rank)), cudaErrorNotReady);
  }
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) expect_all(data[rank], 42, rank);
}

// A rank that has completed may overwrite its send buffer, even if other ranks arrive late.
TEST_P(OrderTest, BuffersMayBeReusedAfterTheCall) {
  const Ranks all(ranks());
  const int root = ranks() - 1;
  for (int kind = 0; kind < 4; ++kind) {
    const auto from = buffers(1), to = buffers(0);
    for (int rank = 0; rank < ranks(); ++rank) {
      enqueue_change(rank, from[rank].data(), 2, 1, rank % 2 != kind % 2, all.stream(rank));
      enqueue_change(rank, to[rank].data(), 0, 0, rank % 2 == kind % 2, all.stream(rank));
    }
    all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
      const std::byte* send = from[rank].data();
      std::byte* receive = to[rank].data();
      if (kind == 0) return ncclBroadcast(send, receive, kCount, ncclInt32, root, communicator, stream);
      if (kind == 1) return ncclReduce(send, receive, kCount, ncclInt32, ncclSum, root, communicator, stream);
      if (kind == 2) return ncclAllReduce(send, receive, kCount, ncclInt32, ncclSum, communicator, stream);
      require(ncclSend(send, kCount, ncclInt32, (rank + 1) % ranks(), communicator, stream));
      return ncclRecv(receive, kCount, ncclInt32, (rank + ranks() - 1) % ranks(), communicator, stream);
    });
    for (int rank = 0; rank < ranks(); ++rank)
      enqueue_change(rank, from[rank].data(), 0, -1, false, all.stream(rank));
    all.synchronize();
    const int sum = 3 * ranks();
    for (int rank = 0; rank < ranks(); ++rank) {
      expect_all(to[rank], kind == 2 ? sum : kind != 1 ? 3 : rank == root ? sum : 0, rank);
      expect_all(from[rank], -1, rank);
    }
  }
}

// Different collectives in one group, as one operation.
TEST_P(OrderTest, SeveralCallsInOneGroup) {
  const Ranks all(ranks());
  const auto sums = buffers(2), maxima = buffers(3), broadcasts = buffers(0);
  for (int rank = 0; rank < ranks(); ++rank) {
    enqueue_change(rank, maxima[rank].data(), 1, rank, true, all.stream(rank));
    enqueue_change(rank, broadcasts[rank].data(), 1, 70 + rank, true, all.stream(rank));
  }
  all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    const auto [sum, maximum, broadcast] =
        std::tuple(sums[rank].data(), maxima[rank].data(), broadcasts[rank].data());
    require(ncclAllReduce(sum, sum, kCount, ncclInt32, ncclSum, communicator, stream));
    require(ncclBroadcast(broadcast, broadcast, kCount, ncclInt32, ranks() - 1, communicator, stream));
    return ncclAllReduce(maximum, maximum, kCount, ncclInt32, ncclMax, communicator, stream);
  });
  for (int rank = 0; rank < ranks(); ++rank)
    enqueue_change(rank, sums[rank].data(), 10, rank, false, all.stream(rank));
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) {
    expect_all(sums[rank], 20 * ranks() + rank, rank);
    expect_all(maxima[rank], 2 + ranks(), rank);
    expect_all(broadcasts[rank], 69 + ranks(), rank);
  }
}

TEST_P(OrderTest, NothingStartsBeforeTheOuterGroupEnds) {
  const Ranks all(ranks());
  const auto data = buffers();
  NCCL_OK(ncclGroupStart());
  all_reduce(all, data);
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_EQ(cudaStreamSynchronize(all.stream(rank)), cudaSuccess);
    expect_all(data[rank], 1, rank);
  }
  NCCL_OK(ncclGroupEnd());
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) expect_all(data[rank], ranks(), rank);
}

// "It will behave as if the NCCL group operation was posted on every stream": two streams on each rank.
TEST_P(OrderTest, AGroupOnTwoStreamsJoinsThem) {
  const Ranks all(ranks());
  const auto first = buffers(1), second = buffers(2);
  std::vector<std::unique_ptr<Stream>> others;
  for (int rank = 0; rank < ranks(); ++rank) {
    const OnDevice on(rank);
    others.push_back(std::make_unique<Stream>());
    enqueue_change(rank, first[rank].data(), 1, 4, true, *others[rank]);
    enqueue_change(rank, second[rank].data(), 1, 5, true, all.stream(rank));
  }
  const auto call = [](const Bytes& data, ncclComm_t communicator, cudaStream_t stream) {
    return ncclAllReduce(data.data(), data.data(), kCount, ncclInt32, ncclSum, communicator, stream);
  };
  all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    require(call(first[rank], communicator, stream));
    return call(second[rank], communicator, *others[rank]);
  });
  for (int rank = 0; rank < ranks(); ++rank) {
    enqueue_change(rank, first[rank].data(), 10, 1, false, *others[rank]);
    enqueue_change(rank, second[rank].data(), 10, 2, false, all.stream(rank));
  }
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) {
    require(cudaStreamSynchronize(*others[rank]));
    expect_all(first[rank], 50 * ranks() + 1, rank);
    expect_all(second[rank], 70 * ranks() + 2, rank);
  }
}

// Two cliques over the same GPUs, used alternately in the same streams; the second has the reverse rank
// order.
TEST_P(OrderTest, TwoCommunicatorsOnOneStream) {
  const Ranks all(ranks());
  std::vector<int> devices(ranks());
  for (int rank = 0; rank < ranks(); ++rank) devices[rank] = ranks() - 1 - rank;
  std::vector<ncclComm_t> backwards(ranks());
  NCCL_OK(ncclCommInitAll(backwards.data(), ranks(), devices.data()));
  const auto data = buffers(1), gathered = buffers(0);
  all_reduce(all, data);
  for (int rank = 0; rank < ranks(); ++rank)
    enqueue_change(rank, data[rank].data(), 1, 10 * rank, true, all.stream(rank));
  NCCL_OK(ncclGroupStart());
  for (int rank = 0; rank < ranks(); ++rank) {
    const int device = devices[rank];
    NCCL_OK(ncclAllGather(data[device].data(), gathered[device].data(), 1, ncclInt32, backwards[rank],
                          all.stream(device)));
  }
  NCCL_OK(ncclGroupEnd());
  all.synchronize();
  std::vector<int> expected;
  for (int device : devices) expected.push_back(ranks() + 10 * device);
  for (int rank = 0; rank < ranks(); ++rank) EXPECT_EQ(gathered[rank].get<int>(ranks()), expected) << rank;
  for (ncclComm_t communicator : backwards) NCCL_OK(ncclCommDestroy(communicator));
}

}  // namespace
}  // namespace semantics
