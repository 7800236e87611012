// Creation and destruction of communicators, and failing calls. Guide, "Creating a Communicator", "Error
// Handling"; nccl.h.
#include <cstring>

#include "nccl_test.hpp"

namespace semantics {
namespace {

class CommunicatorsTest : public RanksTest {
 protected:
  static void expect_place(ncclComm_t communicator, int rank, int ranks, int device) {
    int value = -1;
    EXPECT_EQ(ncclCommUserRank(communicator, &value), ncclSuccess);
    EXPECT_EQ(value, rank);
    EXPECT_EQ(ncclCommCount(communicator, &value), ncclSuccess);
    EXPECT_EQ(value, ranks);
    EXPECT_EQ(ncclCommCuDevice(communicator, &value), ncclSuccess);
    EXPECT_EQ(value, device);
    ncclResult_t error = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(communicator, &error), ncclSuccess);
    EXPECT_EQ(error, ncclSuccess);
  }
  /// Expects that the communicators work: sums over the ranks.
  static void expect_sum(const std::vector<ncclComm_t>& communicators, const std::vector<int>& devices) {
    const int ranks = static_cast<int>(devices.size());
    std::vector<Bytes> data;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int rank = 0; rank < ranks; ++rank) {
      const OnDevice on(devices[rank]);
      data.emplace_back(devices[rank], std::vector<int>{1 << rank});
      streams.push_back(std::make_unique<Stream>());
    }
    require(ncclGroupStart());
    for (int rank = 0; rank < ranks; ++rank) {
      std::byte* place = data[rank].data();
      require(ncclAllReduce(place, place, 1, ncclInt32, ncclSum, communicators[rank], *streams[rank]));
    }
    require(ncclGroupEnd());
    for (int rank = 0; rank < ranks; ++rank) {
      require(cudaStreamSynchronize(*streams[rank]));
      EXPECT_EQ(data[rank].get<int>(1).front(), (1 << ranks) - 1);
    }
  }
};
FOR_ALL_RANKS(CommunicatorsTest);

TEST_P(CommunicatorsTest, InitAllKeepsTheOrderOfTheDevices) {
  std::vector<int> devices(ranks());
  for (int rank = 0; rank < ranks(); ++rank) devices[rank] = (rank + 1) % ranks();
  std::vector<ncclComm_t> communicators(ranks());
  NCCL_OK(ncclCommInitAll(communicators.data(), ranks(), devices.data()));
  for (int rank = 0; rank < ranks(); ++rank) expect_place(communicators[rank], rank, ranks(), devices[rank]);
  int current = -1;
  CUDA_OK(cudaGetDevice(&current));
  EXPECT_EQ(current, 0);
  expect_sum(communicators, devices);
  for (ncclComm_t communicator : communicators) NCCL_OK(ncclCommDestroy(communicator));
}

TEST_P(CommunicatorsTest, InitRankInAGroup) {
  for (const bool with_configuration : {false, true}) {
    ncclUniqueId id, other;
    NCCL_OK(ncclGetUniqueId(&id));
    NCCL_OK(ncclGetUniqueId(&other));
    EXPECT_NE(std::memcmp(&id, &other, sizeof(id)), 0);
    std::vector<ncclComm_t> communicators(ranks());
    std::vector<int> devices(ranks());
    ncclConfig_t configuration = NCCL_CONFIG_INITIALIZER;
    configuration.blocking = 1;
    NCCL_OK(ncclGroupStart());
    for (int rank = 0; rank < ranks(); ++rank) {
      devices[rank] = ranks() - 1 - rank;
      const OnDevice on(devices[rank]);
      if (with_configuration) {
        NCCL_OK(ncclCommInitRankConfig(&communicators[rank], ranks(), id, rank, &configuration));
      } else {
        NCCL_OK(ncclCommInitRank(&communicators[rank], ranks(), id, rank));
      }
    }
    NCCL_OK(ncclGroupEnd());
    for (int rank = 0; rank < ranks(); ++rank)
      expect_place(communicators[rank], rank, ranks(), devices[rank]);
    expect_sum(communicators, devices);
    for (ncclComm_t communicator : communicators) NCCL_OK(ncclCommDestroy(communicator));
  }
}

TEST_P(CommunicatorsTest, AbortOfAnIdleCommunicator) {
  std::vector<ncclComm_t> communicators(ranks());
  NCCL_OK(ncclCommInitAll(communicators.data(), ranks(), nullptr));
  for (ncclComm_t communicator : communicators) NCCL_OK(ncclCommAbort(communicator));
}

TEST_P(CommunicatorsTest, MemoryOfNccl) {
  const Ranks all(ranks());
  std::vector<void*> memory(ranks()), known(ranks());
  for (int rank = 0; rank < ranks(); ++rank) {
    const OnDevice on(rank);
    NCCL_OK(ncclMemAlloc(&memory[rank], 4096));
    NCCL_OK(ncclCommRegister(all.communicator(rank), memory[rank], 4096, &known[rank]));
    CUDA_OK(cudaMemset(memory[rank], rank + 1, 4096));
    CUDA_OK(cudaDeviceSynchronize());
  }
  all.together([&](int rank, ncclComm_t communicator, cudaStream_t stream) {
    return ncclAllReduce(memory[rank], memory[rank], 4096, ncclInt8, ncclMax, communicator, stream);
  });
  all.synchronize();
  for (int rank = 0; rank < ranks(); ++rank) {
    const OnDevice on(rank);
    std::vector<char> values(4096);
    CUDA_OK(cudaMemcpy(values.data(), memory[rank], values.size(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(values, std::vector<char>(4096, static_cast<char>(ranks())));
    NCCL_OK(ncclCommDeregister(all.communicator(rank), known[rank]));
    NCCL_OK(ncclMemFree(memory[rank]));
  }
}

class NcclErrorsTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    all_ = std::make_unique<Ranks>(1);
    data_ = std::make_unique<DeviceArray<int>>(100, 7);
  }
  void TearDown() override {
    data_.reset();
    all_.reset();
    GpuTest::TearDown();
  }
  ncclResult_t all_reduce(ncclComm_t communicator) {
    return ncclAllReduce(data_->data(), data_->data(), 100, ncclInt32, ncclSum, communicator,
                         all_->stream(0));
  }
  std::unique_ptr<Ranks> all_;
  std::unique_ptr<DeviceArray<int>> data_;
};

TEST_F(NcclErrorsTest, WrongArguments) {
  int* data = data_->data();
  ncclComm_t communicator = all_->communicator(0);
  cudaStream_t stream = all_->stream(0);
  EXPECT_EQ(all_reduce(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(data, data, 100, ncclInt32, 1, communicator, stream), ncclInvalidArgument)
      << "root";
  EXPECT_EQ(ncclReduce(data, data, 100, ncclInt32, ncclSum, -1, communicator, stream), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(data, 100, ncclInt32, 1, communicator, stream), ncclInvalidArgument) << "peer";
  EXPECT_EQ(ncclRecv(data, 100, ncclInt32, -1, communicator, stream), ncclInvalidArgument) << "peer";
  EXPECT_EQ(ncclAllGather(data, data, 1, static_cast<ncclDataType_t>(99), communicator, stream),
            ncclInvalidArgument);
  int count = 0;
  EXPECT_EQ(ncclCommCount(nullptr, &count), ncclInvalidArgument);
  EXPECT_EQ(ncclCommCount(communicator, nullptr), ncclInvalidArgument);
  // The failed calls had no effect.
  NCCL_OK(all_reduce(communicator));
  all_->synchronize();
  EXPECT_EQ(data_->values(), std::vector<int>(100, 7));
}

TEST_F(NcclErrorsTest, AFailedCallFailsItsGroup) {
  NCCL_OK(ncclGroupStart());
  EXPECT_EQ(
      ncclBroadcast(data_->data(), data_->data(), 100, ncclInt32, 5, all_->communicator(0), all_->stream(0)),
      ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  NCCL_OK(all_reduce(all_->communicator(0)));
  all_->synchronize();
}

TEST_F(NcclErrorsTest, AnEndWithoutAStart) { EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage); }

TEST_F(NcclErrorsTest, AnEmptyGroup) {
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclGroupEnd());
}

TEST_F(NcclErrorsTest, WrongRanksAndDevices) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  ncclComm_t communicator = nullptr;
  EXPECT_EQ(ncclCommInitRank(&communicator, 2, id, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&communicator, 2, id, -1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&communicator, 0, id, 0), ncclInvalidArgument);
  ncclComm_t two[2];
  const int twice[] = {0, 0}, none[] = {0, 1000};
  EXPECT_EQ(ncclCommInitAll(two, 2, twice), ncclInvalidUsage);
  EXPECT_NE(ncclCommInitAll(two, 2, none), ncclSuccess);
}

TEST_F(NcclErrorsTest, VersionAndTexts) {
  int version = 0;
  NCCL_OK(ncclGetVersion(&version));
  EXPECT_GE(version, NCCL_VERSION(2, 18, 0));
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_EQ(std::string(ncclGetErrorString(ncclInvalidArgument)).rfind("invalid argument", 0), 0u);
  EXPECT_EQ(std::string(ncclGetErrorString(ncclInvalidUsage)).rfind("invalid usage", 0), 0u);
}

TEST_F(NcclErrorsTest, FinalizeThenDestroy) {
  ncclComm_t communicator = nullptr;
  NCCL_OK(ncclCommInitAll(&communicator, 1, nullptr));
  NCCL_OK(all_reduce(communicator));
  NCCL_OK(ncclCommFinalize(communicator));
  EXPECT_EQ(ncclCommFinalize(communicator), ncclInvalidArgument) << "a second time";
  NCCL_OK(ncclCommDestroy(communicator));
  all_->synchronize();
}

}  // namespace
}  // namespace semantics
