// Virtual NCCL's bytes and modelled times: exact bytes, ordered times.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nccl_virtual_test.hpp"

namespace virtual_only {
namespace {

class NcclModelTest : public NcclTest {
 protected:
  /// Modelled milliseconds of `call(rank)` on all ranks: the slowest one's.
  template <class Call>
  float time_of(Call call) {
    std::vector<cudaEvent_t> starts, stops;
    for (int rank = 0; rank < size(); ++rank) {
      require(cudaSetDevice(rank));
      starts.push_back(new_event());
      stops.push_back(new_event());
      require(cudaEventRecord(starts[rank], streams[rank]));
    }
    require(ncclGroupStart());
    for (int rank = 0; rank < size(); ++rank) require(call(rank));
    require(ncclGroupEnd());
    float latest = 0;
    for (int rank = 0; rank < size(); ++rank) require(cudaEventRecord(stops[rank], streams[rank]));
    for (int rank = 0; rank < size(); ++rank)
      latest = std::max(latest, milliseconds(starts[rank], stops[rank]));
    return latest;
  }
  /// Bytes between ranks since `before`, as "from>to:bytes/messages" for all that are not 0.
  std::string moved() {
    std::string text;
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        const auto [bytes, copies] = vgpu::traffic(from, to);
        auto& [bytes_before, copies_before] = before_[from * 16 + to];
        if (bytes != bytes_before) {
          text += std::to_string(from) + ">" + std::to_string(to) + ":" +
                  std::to_string(bytes - bytes_before) + "/" + std::to_string(copies - copies_before) + " ";
        }
        bytes_before = bytes;
        copies_before = copies;
      }
    }
    return text;
  }
  template <class Call>
  std::string moved_by(Call call) {
    require(ncclGroupStart());
    for (int rank = 0; rank < size(); ++rank) require(call(rank));
    require(ncclGroupEnd());
    synchronize();
    return moved();
  }

 private:
  vgpu::Traffic before_[256] = {};
};

TEST_F(NcclModelTest, BytesPerLink) {
  make_ranks(3);
  EXPECT_EQ(moved(), "");
  EXPECT_EQ(moved_by([&](int rank) { return all_gather(rank, 10); }), "0>1:80/2 1>2:80/2 2>0:80/2 ");
  EXPECT_EQ(moved_by([&](int rank) { return reduce_scatter(rank, 10); }), "0>1:80/2 1>2:80/2 2>0:80/2 ");
  EXPECT_EQ(moved_by([&](int rank) { return all_reduce(rank, 30); }), "0>1:160/4 1>2:160/4 2>0:160/4 ");
  // 11 elements are 4, 4 and 3: a rank never sends its own part, nor in the second round its successor's.
  EXPECT_EQ(moved_by([&](int rank) { return all_reduce(rank, 11); }), "0>1:56/4 1>2:60/4 2>0:60/4 ");
  EXPECT_EQ(moved_by([&](int rank) { return broadcast(rank, 10, 1); }), "1>2:40/1 2>0:40/1 ");
  EXPECT_EQ(moved_by([&](int rank) { return reduce(rank, 10, 1); }), "0>1:40/1 2>0:40/1 ");
  EXPECT_EQ(moved_by([&](int rank) {
              return rank == 0 ? send(0, 2, 7) : rank == 2 ? receive(2, 0, 7) : ncclSuccess;
            }),
            "0>2:28/1 ");
  EXPECT_EQ(moved_by([&](int rank) {
              require(send(rank, rank, 10));
              return receive(rank, rank, 10);
            }),
            "")
      << "within a GPU no link is used";
}

TEST_F(NcclModelTest, AllReduceTakesTwiceAsLongAsReduceScatter) {
  make_ranks(4);
  const float scatter = time_of([&](int rank) { return reduce_scatter(rank, kRoom / 4); });
  const float gather = time_of([&](int rank) { return all_gather(rank, kRoom / 4); });
  const float all = time_of([&](int rank) { return all_reduce(rank, kRoom); });
  EXPECT_GT(all, 1.4 * scatter);
  EXPECT_LT(all, 2.1 * scatter);
  EXPECT_NEAR(gather, scatter, 0.05 * scatter);
  EXPECT_LT(time_of([&](int rank) { return all_reduce(rank, 1); }), 0.5 * scatter) << "latency alone";
}

// In a ring, (P-1)/P of the data leaves each rank.
TEST_F(NcclModelTest, MoreRanksGatherTheSameTotalALittleSlower) {
  float before = 0;
  for (int ranks : {2, 4, 8}) {
    TearDown();
    make_ranks(ranks);
    const float time = time_of([&](int rank) { return all_gather(rank, kRoom / ranks); });
    EXPECT_GT(time, before);
    before = time;
  }
}

TEST_F(NcclModelTest, AGroupPaysTheLatencyOnce) {
  make_ranks(2);
  const float one = time_of([&](int rank) { return all_reduce(rank, 1); });
  EXPECT_LT(
      time_of([&](int rank) {
        for (int i = 0; i < 8; ++i) {
          int* place = data[rank] + i;
          require(ncclAllReduce(place, place, 1, ncclInt32, ncclSum, communicators[rank], streams[rank]));
        }
        return ncclSuccess;
      }),
      2 * one);
}

// All-to-all: a GPU's outgoing data share its link out, incoming data its link in.
TEST_F(NcclModelTest, SendsToSeveralRanksShareTheLink) {
  make_ranks(4);
  constexpr std::size_t kCount = kRoom / 8;
  const auto exchange = [&](int rank, int peers) {
    for (int i = 1; i <= peers; ++i) {
      require(ncclSend(data[rank] + i * kCount, kCount, ncclInt32, (rank + i) % 4, communicators[rank],
                       streams[rank]));
      require(receive(rank, (rank + 4 - i) % 4, kCount, (4 + i) * kCount));
    }
    return ncclSuccess;
  };
  const float empty = time_of([&](int rank) { return all_reduce(rank, 1); });
  const float one = time_of([&](int rank) { return exchange(rank, 1); }) - empty;
  const float three = time_of([&](int rank) { return exchange(rank, 3); }) - empty;
  EXPECT_GT(three, 2.5 * one);
  EXPECT_LT(three, 3.5 * one);
}

// One rank sends to all others, or receives from all others: the transfers share that rank's link.
TEST_F(NcclModelTest, OneRanksLinkIsSharedInEachDirection) {
  make_ranks(4);
  constexpr std::size_t kCount = kRoom / 4;
  const float empty = time_of([&](int rank) { return all_reduce(rank, 1); });
  const auto spread = [&](int peers, bool from_one) {
    return time_of([&](int rank) {
             for (int peer = 1; peer <= peers; ++peer) {
               if (rank != 0 && rank != peer) continue;
               int* place = data[rank] + (rank == 0 ? peer * kCount : 0);
               const int other = rank == 0 ? peer : 0;
               const bool sends = (rank == 0) == from_one;
               require(sends ? ncclSend(place, kCount, ncclInt32, other, communicators[rank], streams[rank])
                             : ncclRecv(place, kCount, ncclInt32, other, communicators[rank], streams[rank]));
             }
             return ncclSuccess;
           }) -
           empty;
  };
  for (const bool from_one : {true, false}) {
    const float one = spread(1, from_one), three = spread(3, from_one);
    EXPECT_GT(three, 2.5 * one) << from_one;
    EXPECT_LT(three, 3.5 * one) << from_one;
  }
}

TEST_F(NcclModelTest, TheLastRankToComeDecides) {
  make_ranks(2);
  const float alone = time_of([&](int rank) { return all_reduce(rank, 1000); });
  const float late = time_of([&](int rank) {
    if (rank == 1) {
      require(cudaSetDevice(1));
      require(cudaMemsetAsync(data[1], 0, kRoom * sizeof(int), streams[1]));
      for (int i = 0; i < 50; ++i) {
        require(
            cudaMemcpyAsync(data[1] + kRoom / 2, data[1], kRoom * 2, cudaMemcpyDeviceToDevice, streams[1]));
      }
    }
    return all_reduce(rank, 1000);
  });
  EXPECT_GT(late, alone);
}

/// The machine "small" without peer access, and with a slow link to the host.
nlohmann::json machine_without_peer_access() {
  nlohmann::json machine;
  std::ifstream(VGPU_MACHINES_DIR "/small.json") >> machine;
  machine["peer"]["access"] = false;
  machine["host"]["copy_gb_per_s"] = 2;
  return machine;
}

TEST_F(NcclModelTest, WithoutPeerAccessAllGoesThroughTheHost) {
  make_ranks(2);
  const auto run = [&] { return time_of([&](int rank) { return all_reduce(rank, kRoom); }); };
  const float with = run();
  TearDown();
  vgpu::use_machine(machine_file(machine_without_peer_access().dump()));
  make_ranks(2);
  EXPECT_GT(run(), 1.3 * with);
}

TEST_F(NcclModelTest, OneRankCopiesWithoutAKernel) {
  make_ranks(1);
  const float one = time_of([&](int) {
    return ncclAllReduce(data[0], data[0] + 100, 100, ncclInt32, ncclSum, communicators[0], streams[0]);
  });
  TearDown();
  make_ranks(2);
  EXPECT_LT(one, 0.5 * time_of([&](int rank) { return all_reduce(rank, 1); }));
}

// 2048 + 1 is not representable in half: rounding after each step would lose both ones.
TEST_F(NcclModelTest, SixteenBitSumsAreRoundedOnce) {
  make_ranks(3);
  const auto sum = [&](auto large, ncclDataType_t type) {
    using T = decltype(large);
    std::vector<T*> places;
    for (int rank = 0; rank < 3; ++rank) {
      require(cudaSetDevice(rank));
      places.push_back(device_words<T>(1, rank == 0 ? large : T(1.0f)));
    }
    require(ncclGroupStart());
    for (int rank = 0; rank < 3; ++rank) {
      require(
          ncclAllReduce(places[rank], places[rank], 1, type, ncclSum, communicators[rank], streams[rank]));
    }
    require(ncclGroupEnd());
    synchronize();
    return static_cast<float>(word(places[2]));
  };
  EXPECT_EQ(sum(__half(2048.0f), ncclFloat16), 2050);
  EXPECT_EQ(sum(__nv_bfloat16(256.0f), ncclBfloat16), 258);
}

// A peer copy and a collective share the link.
TEST_F(NcclModelTest, CopyEnginesAndNcclShareTheLink) {
  make_ranks(2);
  require(cudaSetDevice(0));
  require(cudaDeviceEnablePeerAccess(1, 0));
  constexpr std::size_t kBytes = 1 << 18;
  const char* from = device_room<char>(kBytes);
  char* to = on_gpu(1, [] { return device_room<char>(kBytes); });
  const cudaStream_t copies = new_stream();
  const auto all = [&](int rank) { return all_reduce(rank, kRoom); };
  const float alone = time_of(all);
  require(cudaMemcpyPeerAsync(to, 1, from, 0, kBytes, copies));
  const float beside = time_of(all);
  require(cudaStreamSynchronize(copies));
  EXPECT_GT(beside, 1.3 * alone);
}

// ---- Nodes -----------------------------------------------------------------------------------------------
TEST_F(NcclModelTest, PairsInTwoNodesHaveTheirRails) {
  vgpu::use_nodes(2, 2);
  make_ranks(4);
  constexpr std::size_t kCount = kRoom / 2;
  const auto pair = [&](int from, int to) {
    return time_of([&](int rank) {
      return rank == from ? send(rank, to, kCount) : rank == to ? receive(rank, from, kCount) : ncclSuccess;
    });
  };
  const float inside = pair(0, 1), between = pair(0, 2);
  EXPECT_GT(between, 2 * inside);
  const float all_at_once = time_of([&](int rank) {
    require(send(rank, (rank + 2) % 4, kCount));
    return receive(rank, (rank + 2) % 4, kCount);
  });
  EXPECT_NEAR(all_at_once, between, 0.05 * between) << "each along its own rail, both ways";
}

// All rails together carry the collective's data between nodes: more GPUs in a node are more rails.
TEST_F(NcclModelTest, ACollectiveUsesTheRailsOfAllItsRanks) {
  const auto gather_on = [&](int nodes, int per_node) {
    vgpu::reset();
    vgpu::use_nodes(nodes, per_node);
    make_ranks(8);
    return time_of([&](int rank) { return all_gather(rank, kRoom / 8); });
  };
  const float one_node = gather_on(1, 8), two = gather_on(2, 4), eight = gather_on(8, 1);
  EXPECT_LT(one_node, two);
  EXPECT_LT(2 * two, eight) << "four rails in a node, and one";
}

// ---- maxCTAs ---------------------------------------------------------------------------------------------
// Fewer channels move less at a time, and leave SMs to other kernels.
TEST_F(NcclModelTest, ACommunicatorMayHaveFewerChannels) {
  const auto gather_with = [&](int most) {
    vgpu::reset();
    communicators.assign(2, nullptr);
    streams.clear();
    data.assign(2, nullptr);
    vgpu::use_machine("h100-nvlink");
    ncclUniqueId id;
    require(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = most;
    require(ncclGroupStart());
    for (int rank = 0; rank < 2; ++rank) {
      require(cudaSetDevice(rank));
      require(ncclCommInitRankConfig(&communicators[rank], 2, id, rank, &config));
    }
    require(ncclGroupEnd());
    constexpr std::size_t kCount = std::size_t{1} << 22;
    for (int rank = 0; rank < 2; ++rank) {
      require(cudaSetDevice(rank));
      streams.push_back(new_stream());
      require(cudaMalloc(&data[rank], 2 * kCount * sizeof(int)));
      require(cudaMemset(data[rank], 0, 2 * kCount * sizeof(int)));
      require(cudaDeviceSynchronize());
    }
    return time_of([&](int rank) { return all_gather(rank, kCount); });
  };
  const float all = gather_with(16), four = gather_with(4);
  EXPECT_GT(four, 2 * all);
  EXPECT_NEAR(gather_with(100), all, 0.01 * all) << "more than there are";
}

}  // namespace
}  // namespace virtual_only
