// NCCL calls that wait for ever: the report names the missing ranks. And aborts, which end such calls.
#include "nccl_virtual_test.hpp"

namespace virtual_only {
namespace {

class NcclDeadlocksTest : public InSchedules<NcclTest> {};
INSTANTIATE_TEST_SUITE_P(Schedules, NcclDeadlocksTest, testing::Values(0, 5, 6));

TEST_P(NcclDeadlocksTest, SendWithoutItsReceive) {
  make_ranks(2);
  NCCL_OK(send(0, 1, 1024));
  const std::string report = deadlock_of(streams[0]);
  expect_parts(report,
               {"deadlock", "gpu0/stream1", ": ncclSend of 4096 bytes to rank 1: waits for its ncclRecv;"});
  EXPECT_EQ(report.find("gpu1"), std::string::npos) << report;
}

TEST_P(NcclDeadlocksTest, ReceiveWithoutItsSend) {
  make_ranks(3);
  NCCL_OK(receive(2, 1, 10));
  expect_parts(deadlock_of(streams[2]),
               {"gpu2/stream1", "ncclRecv of 40 bytes from rank 1: waits for its ncclSend;"});
}

// Each send of the ring waits for the neighbour's receive, which is enqueued after its send.
TEST_P(NcclDeadlocksTest, RingWithoutAGroup) {
  make_ranks(3);
  for (int rank = 0; rank < 3; ++rank) {
    NCCL_OK(send(rank, (rank + 1) % 3, 10));
    NCCL_OK(receive(rank, (rank + 2) % 3, 10));
  }
  expect_parts(
      deadlock_of(streams[1]),
      {"gpu0/stream1",
       "ncclSend of 40 bytes to rank 1: waits for its ncclRecv (behind other work of gpu1/stream1); 1 more",
       "ncclSend of 40 bytes to rank 2: waits for its ncclRecv (behind other work of gpu2/stream1); 1 more",
       "ncclSend of 40 bytes to rank 0: waits for its ncclRecv (behind other work of gpu0/stream1); 1 more"});
}

TEST_P(NcclDeadlocksTest, RanksThatDoNotTakePart) {
  make_ranks(4);
  NCCL_OK(all_reduce(0, 10));
  NCCL_OK(all_reduce(2, 10));
  expect_parts(
      deadlock_of(streams[2]),
      {"gpu0/stream1", "ncclAllReduce of 40 bytes: waits for rank 1 (not called), rank 3 (not called);",
       "gpu2/stream1"});
}

TEST_P(NcclDeadlocksTest, OneCallOfAGroup) {
  make_ranks(2);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(send(0, 1, 10));
  NCCL_OK(receive(0, 1, 20));
  NCCL_OK(receive(1, 0, 10));
  NCCL_OK(ncclGroupEnd());
  expect_parts(deadlock_of(streams[0]),
               {"group of 2 NCCL calls (ncclSend of 40 bytes to rank 1, ncclRecv of 80 bytes from rank 1): "
                "ncclRecv of 80 bytes from rank 1 waits for its ncclSend;"});
}

// Two cliques in different order in the streams of two GPUs.
TEST_P(NcclDeadlocksTest, CommunicatorsInDifferentOrder) {
  make_ranks(2);
  ncclComm_t others[2];
  NCCL_OK(ncclCommInitAll(others, 2, nullptr));
  const auto other = [&](int rank) {
    return ncclAllReduce(data[rank] + 100, data[rank] + 100, 10, ncclInt32, ncclSum, others[rank],
                         streams[rank]);
  };
  NCCL_OK(all_reduce(0, 10));
  NCCL_OK(other(0));
  NCCL_OK(other(1));
  NCCL_OK(all_reduce(1, 10));
  expect_parts(deadlock_of(streams[0]), {"waits for rank 1 (behind other work of gpu1/stream1); 1 more",
                                         "waits for rank 0 (behind other work of gpu0/stream1); 1 more"});
}

TEST_P(NcclDeadlocksTest, ChannelsWithoutAMultiprocessor) {
  make_ranks(2);
  int* flag = device_words(1, 0);
  constexpr int kShared = 200 * 1024;  // of 228 KiB: one block per SM
  require(cudaFuncSetAttribute(await<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  await<int><<<8, 1, kShared, new_stream()>>>(flag);  // fills the GPU
  require(cudaGetLastError());
  for (int rank = 0; rank < 2; ++rank) NCCL_OK(all_reduce(rank, 10));
  if (GetParam() != 0) return;  // if NCCL starts first, it fits
  expect_parts(deadlock_of(streams[1]),
               {"gpu0/stream1", "1 of 1 channels cannot start (no free multiprocessor)", "gpu1/stream1",
                "waits for rank 0 (behind other work of gpu0/stream1)"});
}

TEST_P(NcclDeadlocksTest, SetupWithoutTheOtherRanks) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  ncclComm_t communicator = nullptr;
  testing::internal::CaptureStderr();
  const ncclResult_t result = ncclCommInitRank(&communicator, 3, id, 1);
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, ncclUnhandledCudaError);
  expect_parts(
      report,
      {"deadlock",
       "the host (GPU 0): waits for the other ranks of an NCCL communicator of 3 ranks (ncclCommInitRank)"});
  EXPECT_EQ(communicator, nullptr);
}

TEST_P(NcclDeadlocksTest, DestroyWaitsForTheRanksWork) {
  make_ranks(2);
  NCCL_OK(all_reduce(0, 10));
  testing::internal::CaptureStderr();
  EXPECT_EQ(ncclCommDestroy(communicators[0]), ncclUnhandledCudaError);
  expect_parts(testing::internal::GetCapturedStderr(), {"waits for rank 1 (not called)"});
}

class NcclAbortTest : public NcclDeadlocksTest {};
INSTANTIATE_TEST_SUITE_P(Schedules, NcclAbortTest, testing::Values(0, 5, 6));

// The stream continues, and the memory is unchanged.
TEST_P(NcclAbortTest, EndsACallThatWaits) {
  make_ranks(2);
  set<<<1, 1, 0, streams[0]>>>(data[0], 3);
  NCCL_OK(all_reduce(0, 10));
  NCCL_OK(all_reduce(0, 10));
  set<<<1, 1, 0, streams[0]>>>(data[0] + 1, 4);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  NCCL_OK(ncclCommAbort(communicators[0]));
  CUDA_OK(cudaStreamSynchronize(streams[0]));
  EXPECT_EQ(word(data[0]), 3);
  EXPECT_EQ(word(data[0] + 1), 4);
  EXPECT_FALSE(vgpu::failure_reported());
  expect_failure(all_reduce(0, 10), ncclInvalidArgument,
                 {"ncclAllReduce: this communicator does not exist (any more)"});
}

TEST_P(NcclAbortTest, TheOtherRanksNeedItToo) {
  make_ranks(2);
  NCCL_OK(all_reduce(1, 10));
  NCCL_OK(all_reduce(0, 10));
  NCCL_OK(ncclCommAbort(communicators[0]));
  CUDA_OK(cudaStreamSynchronize(streams[0]));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cudaStreamQuery(streams[1]), cudaErrorNotReady);
  ncclResult_t error = ncclInternalError;
  NCCL_OK(ncclCommGetAsyncError(communicators[1], &error));
  EXPECT_EQ(error, ncclSuccess);
  NCCL_OK(ncclCommAbort(communicators[1]));
  CUDA_OK(cudaStreamSynchronize(streams[1]));
  EXPECT_FALSE(vgpu::failure_reported());
}

TEST_P(NcclAbortTest, WithoutItTheReportNamesTheAbortedRank) {
  make_ranks(2);
  NCCL_OK(all_reduce(1, 10));
  NCCL_OK(all_reduce(0, 10));
  NCCL_OK(ncclCommAbort(communicators[0]));
  expect_parts(deadlock_of(streams[1]),
               {"gpu1/stream1", "ncclAllReduce of 40 bytes: waits for rank 0 (discarded)"});
}

// The SMs of the aborted collective are free again.
TEST_P(NcclAbortTest, GivesTheMultiprocessorsBack) {
  make_ranks(2);
  for (int i = 0; i < 40; ++i) {
    ncclComm_t clique[2];
    NCCL_OK(ncclCommInitAll(clique, 2, nullptr));
    NCCL_OK(ncclSend(data[0], 10, ncclInt32, 1, clique[0], streams[0]));
    EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
    NCCL_OK(ncclCommAbort(clique[0]));
    NCCL_OK(ncclCommDestroy(clique[1]));
  }
  for (int rank = 0; rank < 2; ++rank) NCCL_OK(all_reduce(rank, 10));
  synchronize();
}

}  // namespace
}  // namespace virtual_only
