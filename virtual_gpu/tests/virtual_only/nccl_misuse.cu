// Wrong NCCL calls that hang or corrupt on real GPUs; here an error with a message.
#include "nccl_virtual_test.hpp"

namespace virtual_only {
namespace {

using NcclMisuseTest = NcclTest;

TEST_F(NcclMisuseTest, CollectivesThatDoNotMatch) {
  const auto meets = [&](auto first, auto second, std::initializer_list<const char*> parts) {
    SetUp();
    make_ranks(2);
    NCCL_OK(all_reduce(0, 7));  // matches an earlier call
    NCCL_OK(first());
    NCCL_OK(all_reduce(1, 7));
    expect_failure(second(), ncclInvalidUsage, parts);
  };
  meets([&] { return all_reduce(0, 10); }, [&] { return all_reduce(1, 11); },
        {"ncclAllReduce: rank 1's ncclAllReduce of 11 int32 (sum), meets rank 0's ncclAllReduce of 10 int32 "
         "(sum)"});
  meets([&] { return all_reduce(0, 10); }, [&] { return all_reduce(1, 10, ncclMax); },
        {"rank 1's ncclAllReduce of 10 int32 (max), meets rank 0's ncclAllReduce of 10 int32 (sum)"});
  meets([&] { return all_reduce(0, 10); }, [&] { return all_gather(1, 10); },
        {"rank 1's ncclAllGather of 10 int32, meets rank 0's ncclAllReduce of 10 int32 (sum)"});
  meets([&] { return broadcast(0, 10, 0); }, [&] { return broadcast(1, 10, 1); },
        {"ncclBroadcast of 10 int32 with root 1, meets rank 0's ncclBroadcast of 10 int32 with root 0"});
  meets([&] { return reduce(0, 10, 0); }, [&] { return reduce(1, 10, 1); },
        {"(sum) with root 1", "(sum) with root 0"});
  meets(
      [&] { return all_reduce(0, 10); },
      [&] { return ncclAllReduce(data[1], data[1], 10, ncclFloat32, ncclSum, communicators[1], streams[1]); },
      {"of 10 float32 (sum)", "of 10 int32 (sum)"});
  meets([&] { return send(0, 1, 10); }, [&] { return receive(1, 0, 12); },
        {"rank 1's ncclRecv of 12 int32 from rank 0, meets rank 0's ncclSend of 10 int32 to rank 1"});
}

TEST_F(NcclMisuseTest, AfterAMismatchTheCliqueIsOfNoUse) {
  make_ranks(3);
  NCCL_OK(all_reduce(0, 10));
  EXPECT_EQ(all_reduce(1, 11), ncclInvalidUsage);
  expect_failure(all_reduce(2, 10), ncclInvalidUsage,
                 {"cannot be used any more", "rank 1's ncclAllReduce of 11 int32"});
  ncclResult_t error = ncclSuccess;
  NCCL_OK(ncclCommGetAsyncError(communicators[0], &error));
  EXPECT_EQ(error, ncclInvalidUsage);
  expect_parts(ncclGetLastError(communicators[0]), {"rank 1's ncclAllReduce of 11 int32"});
  for (const ncclComm_t communicator : communicators) NCCL_OK(ncclCommAbort(communicator));
  synchronize();
}

TEST_F(NcclMisuseTest, Buffers) {
  make_ranks(2);
  std::vector<int> pageable(100);
  const auto gather = [&](const void* from, void* to, std::size_t count) {
    return ncclAllGather(from, to, count, ncclInt32, communicators[0], streams[0]);
  };
  expect_failure(gather(pageable.data(), data[0], 10), ncclInvalidArgument,
                 {"ncclAllGather: sendbuff is ordinary host memory"});
  expect_failure(gather(data[0], nullptr, 10), ncclInvalidArgument, {"recvbuff is null"});
  expect_failure(gather(data[1], data[0], 10), ncclInvalidArgument,
                 {"sendbuff lies on GPU 1, the communicator is on GPU 0"});
  expect_failure(gather(data[0], data[0] + kRoom / 2 + 1, kRoom / 4), ncclInvalidArgument,
                 {"recvbuff has room for 32764 bytes, and the call needs 32768"});
  int* gone = device_words(10, 0);
  require(cudaFree(gone));
  expect_failure(gather(gone, data[0], 10), ncclInvalidArgument, {"sendbuff is no memory"});
  expect_failure(gather(data[0] + 5, data[0], 10), ncclInvalidArgument,
                 {"overlap", "sendbuff == recvbuff + rank * sendcount"});
  expect_failure(
      ncclReduceScatter(data[0], data[0] + 5, 10, ncclInt32, ncclSum, communicators[0], streams[0]),
      ncclInvalidArgument, {"overlap", "recvbuff == sendbuff + rank * recvcount"});
  expect_failure(ncclAllReduce(data[0], data[0] + 5, 10, ncclInt32, ncclSum, communicators[0], streams[0]),
                 ncclInvalidArgument, {"overlap", "(sendbuff == recvbuff)"});
  expect_failure(gather(data[0], data[0], SIZE_MAX / 4), ncclInvalidArgument,
                 {"more bytes than there are addresses"});
  // Nothing was enqueued; and pinned memory is accepted.
  const int* pinned = pinned_word(6);
  NCCL_OK(gather(pinned, data[0], 1));
  NCCL_OK(all_gather(1, 1));
  synchronize();
  EXPECT_EQ(word(data[1]), 6);
}

TEST_F(NcclMisuseTest, TypesAndOperations) {
  make_ranks(1);
  const auto call = [&](int type, int op) {
    return ncclAllReduce(data[0], data[0], 1, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op),
                         communicators[0], streams[0]);
  };
  expect_failure(call(10, 0), ncclInvalidArgument, {"does not know the data type 10"});
  expect_failure(call(2, 5), ncclInvalidArgument, {"does not know the reduction 5"});
}

TEST_F(NcclMisuseTest, StreamOfAnotherGpu) {
  make_ranks(2);
  expect_failure(ncclAllReduce(data[0], data[0], 1, ncclInt32, ncclSum, communicators[0], streams[1]),
                 ncclInvalidUsage, {"the communicator is on GPU 0, the stream is gpu1/stream1"});
}

TEST_F(NcclMisuseTest, StreamThatIsGone) {
  make_ranks(1);
  require(cudaStreamDestroy(streams[0]));
  expect_failure(all_reduce(0, 10), ncclUnhandledCudaError, {"this stream does not exist"});
}

// The null stream is that of the communicator's GPU, not of the current one.
TEST_F(NcclMisuseTest, DefaultStreams) {
  make_ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    require(cudaSetDevice(rank));
    set<<<1, 1>>>(data[rank], 5 + rank);
    require(cudaGetLastError());
  }
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_OK(ncclAllReduce(data[rank], data[rank], 1, ncclInt32, ncclSum, communicators[rank], nullptr));
  }
  EXPECT_EQ(word(data[0]), 11);
  EXPECT_EQ(word(data[1]), 11);
}

TEST_F(NcclMisuseTest, CallsOfAGroupThatUseTheSameMemory) {
  make_ranks(2);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(send(0, 1, 10));
  NCCL_OK(receive(0, 1, 10, 9));
  expect_failure(
      ncclGroupEnd(), ncclInvalidUsage,
      {"no order", "rank 0's ncclSend of 10 int32 to rank 1", "rank 0's ncclRecv of 10 int32 from rank 1"});
  NCCL_OK(ncclGroupStart());
  NCCL_OK(send(0, 1, 10));
  NCCL_OK(send(0, 1, 10));  // both only read
  NCCL_OK(receive(0, 1, 10, 10));
  NCCL_OK(ncclGroupEnd());
}

TEST_F(NcclMisuseTest, MemoryFreedBeforeTheGroupEnds) {
  make_ranks(1);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(send(0, 0, 10));
  NCCL_OK(receive(0, 0, 10));
  require(cudaFree(data[0]));
  NCCL_OK(ncclGroupEnd());
  expect_failure(cudaStreamSynchronize(streams[0]), cudaErrorIllegalAddress,
                 {"rank 0's ncclSend of 10 int32 to rank 0", "ran after its memory had been freed"});
}

TEST_F(NcclMisuseTest, SetupThatCannotBe) {
  ncclUniqueId id{}, used;
  ncclComm_t communicator = nullptr;
  expect_failure(ncclCommInitRank(&communicator, 1, id, 0), ncclInvalidArgument,
                 {"does not come from ncclGetUniqueId"});
  require(ncclGetUniqueId(&used));
  NCCL_OK(ncclCommInitRank(&communicator, 1, used, 0));
  expect_failure(ncclCommInitRank(&communicator, 1, used, 0), ncclInvalidUsage,
                 {"rank 0 of this id", "needs a new id"});

  // Two ranks on one GPU.
  require(ncclGetUniqueId(&id));
  ncclComm_t two[2];
  NCCL_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) NCCL_OK(ncclCommInitRank(&two[rank], 2, id, rank));
  expect_failure(ncclGroupEnd(), ncclInvalidUsage, {"ranks 0 and 1 are both on GPU 0"});

  // Ranks with different rank counts.
  require(ncclGetUniqueId(&id));
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclCommInitRank(&two[0], 2, id, 0));
  require(cudaSetDevice(1));
  NCCL_OK(ncclCommInitRank(&two[1], 3, id, 1));
  expect_failure(ncclGroupEnd(), ncclInvalidUsage, {"asks for 2 ranks and rank 1 for 3"});
}

TEST_F(NcclMisuseTest, Configurations) {
  ncclUniqueId id;
  require(ncclGetUniqueId(&id));
  ncclComm_t communicator = nullptr;
  const auto refused = [&](auto change, ncclResult_t code, std::initializer_list<const char*> parts) {
    ncclConfig_t configuration = NCCL_CONFIG_INITIALIZER;
    change(configuration);
    expect_failure(ncclCommInitRankConfig(&communicator, 1, id, 0, &configuration), code, parts);
  };
  refused([](ncclConfig_t& c) { c = {}; }, ncclInvalidArgument, {"NCCL_CONFIG_INITIALIZER"});
  refused([](ncclConfig_t& c) { c.blocking = 0; }, ncclInvalidUsage,
          {"ncclCommInitRankConfig", "blocking = 1"});
  refused([](ncclConfig_t& c) { c.maxCTAs = 0; }, ncclInvalidArgument, {"maxCTAs", "0"});
  refused([](ncclConfig_t& c) { c.cgaClusterSize = 4; }, ncclInvalidUsage, {"cgaClusterSize", "0"});
  refused([](ncclConfig_t& c) { c.minCTAs = 1; }, ncclInvalidUsage, {"minCTAs"});
  refused([](ncclConfig_t& c) { c.commName = "a"; }, ncclInvalidUsage, {"commName"});
  ncclConfig_t no_clusters = NCCL_CONFIG_INITIALIZER;
  no_clusters.cgaClusterSize = 0;
  NCCL_OK(ncclCommInitRankConfig(&communicator, 1, id, 0, &no_clusters));
}

TEST_F(NcclMisuseTest, Groups) {
  make_ranks(2);
  ncclUniqueId id;
  ncclComm_t communicator = nullptr;
  require(ncclGetUniqueId(&id));
  NCCL_OK(ncclGroupStart());
  NCCL_OK(all_reduce(0, 10));
  expect_failure(ncclCommInitRank(&communicator, 1, id, 0), ncclInvalidUsage,
                 {"group that holds other calls"});
  expect_failure(ncclGroupEnd(), ncclInvalidUsage,
                 {"ncclGroupEnd: nothing of the group was done", "ncclCommInitRank: "});
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclCommInitRank(&communicator, 1, id, 0));
  expect_failure(all_reduce(0, 10), ncclInvalidUsage, {"group that makes communicators"});
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(all_reduce(0, 10));
  expect_failure(ncclCommDestroy(communicators[0]), ncclInvalidUsage,
                 {"the group holds calls of this communicator"});
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  synchronize();  // nothing was enqueued
}

TEST_F(NcclMisuseTest, UseAfterTheEnd) {
  make_ranks(2);
  NCCL_OK(ncclCommFinalize(communicators[0]));
  expect_failure(all_reduce(0, 10), ncclInvalidUsage, {"ncclAllReduce: the communicator is finalized"});
  NCCL_OK(ncclCommDestroy(communicators[0]));
  int count = 0;
  expect_failure(ncclCommCount(communicators[0], &count), ncclInvalidArgument,
                 {"ncclCommCount: this communicator does not exist"});
  expect_failure(ncclCommDestroy(communicators[0]), ncclInvalidArgument, {"does not exist"});
}

TEST_F(NcclMisuseTest, NoWindows) {
  make_ranks(1);
  ncclWindow_t window = nullptr;
  expect_failure(ncclCommWindowRegister(communicators[0], data[0], 100, &window, NCCL_WIN_COLL_SYMMETRIC),
                 ncclInvalidUsage, {"ncclCommWindowRegister: virtual NCCL has no windows"});
}

void call_nccl(void* result) { *static_cast<ncclResult_t*>(result) = ncclGroupStart(); }

TEST_F(NcclMisuseTest, NotInAHostFunction) {
  make_ranks(1);
  ncclResult_t result = ncclSuccess;
  require(cudaLaunchHostFunc(streams[0], call_nccl, &result));
  synchronize();
  expect_failure(result, ncclInvalidUsage, {"not permitted in a function of cudaLaunchHostFunc"});
}

}  // namespace
}  // namespace virtual_only
