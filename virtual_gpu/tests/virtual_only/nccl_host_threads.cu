// NCCL from several host threads: invalid setups, missing ranks, stopped runs.
#include "nccl_virtual_test.hpp"

namespace virtual_only {
namespace {

class NcclHostThreadsTest : public InSchedules<VirtualTest> {
 protected:
  void SetUp() override {
    InSchedules::SetUp();
    require(ncclGetUniqueId(&id));
  }
  ncclResult_t init(int rank, int ranks, int device) {
    require(cudaSetDevice(device));
    return ncclCommInitRank(&communicators[rank], ranks, id, rank);
  }
  ncclUniqueId id;
  ncclComm_t communicators[8] = {};
};
INSTANTIATE_TEST_SUITE_P(Schedules, NcclHostThreadsTest, testing::Values(0, 5, 6, 7));

// Ranks that already wait get the error too.
TEST_P(NcclHostThreadsTest, TwoRanksOnOneGpuAreRefusedOnAllRanks) {
  ncclResult_t results[3];
  vgpu::run_host_threads(3, [&](int rank) { results[rank] = init(rank, 3, rank % 2); });
  for (const ncclResult_t result : results) EXPECT_EQ(result, ncclInvalidUsage);
  expect_parts(vgpu::last_error_detail(), {"are both on GPU 0"});
}

TEST_P(NcclHostThreadsTest, DifferentNumbersOfRanksAreRefusedOnAllRanks) {
  ncclResult_t results[2];
  vgpu::run_host_threads(2, [&](int rank) { results[rank] = init(rank, 2 + rank, rank); });
  for (const ncclResult_t result : results) EXPECT_EQ(result, ncclInvalidUsage);
}

TEST_P(NcclHostThreadsTest, AMissingRankIsReported) {
  testing::internal::CaptureStderr();
  ncclResult_t results[2];
  vgpu::run_host_threads(2, [&](int rank) { results[rank] = init(rank, 3, rank); });
  expect_parts(
      testing::internal::GetCapturedStderr(),
      {"deadlock", "host thread 0 (GPU 0): waits for the other ranks of an NCCL communicator of 3 ranks",
       "host thread 1 (GPU 1): waits for the other ranks"});
  for (const ncclResult_t result : results) EXPECT_EQ(result, ncclUnhandledCudaError);
}

// The host threads' clocks meet at the last one's.
TEST_P(NcclHostThreadsTest, SetupBringsTheClocksTogether) {
  double after[2], late = 0;
  vgpu::run_host_threads(2, [&](int rank) {
    for (int i = 0; rank == 1 && i < 1000; ++i) require(cudaSetDevice(1));
    if (rank == 1) late = vgpu::host_time_ms();
    EXPECT_EQ(init(rank, 2, rank), ncclSuccess);
    after[rank] = vgpu::host_time_ms();
  });
  EXPECT_GE(after[0], late);
  EXPECT_GE(after[1], late);
}

// Groups are per thread: other threads' calls meanwhile are not in it.
TEST_P(NcclHostThreadsTest, GroupsBelongToTheirThread) {
  vgpu::run_host_threads(2, [&](int rank) {
    require(init(rank, 2, rank));
    int* data = device_words(2, 1);
    const cudaStream_t stream = new_stream();
    const auto all_reduce = [&](int* place) {
      require(ncclAllReduce(place, place, 1, ncclInt32, ncclSum, communicators[rank], stream));
    };
    if (rank == 0) require(ncclGroupStart());
    all_reduce(data);
    ncclResult_t error = ncclInternalError;
    for (int i = 0; i < 50; ++i) require(ncclCommGetAsyncError(communicators[rank], &error));
    EXPECT_EQ(error, ncclSuccess);
    if (rank == 0) {
      EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess) << "nothing is enqueued yet";
    } else {
      EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "the other thread's group is not this one's";
    }
    all_reduce(data + 1);
    if (rank == 0) require(ncclGroupEnd());
    require(cudaStreamSynchronize(stream));
    EXPECT_EQ(word(data), 2);
    EXPECT_EQ(word(data + 1), 2);
  });
}

TEST_P(NcclHostThreadsTest, StoppingFreesThoseWhoWait) {
  ncclResult_t setup = ncclSuccess;
  cudaError_t work = cudaSuccess;
  vgpu::run_host_threads(3, [&](int rank) {
    if (rank < 2) {
      ncclUniqueId other = id;
      require(cudaSetDevice(rank));
      require(ncclCommInitRank(&communicators[rank], 2, other, rank));
    }
    if (rank == 0) {
      int* data = device_words(2, 1);
      const cudaStream_t stream = new_stream();
      require(ncclAllReduce(data, data, 1, ncclInt32, ncclSum, communicators[0], stream));
      work = cudaStreamSynchronize(stream);
      EXPECT_EQ(ncclCommAbort(communicators[0]), ncclSuccess);
    } else if (rank == 1) {
      ncclUniqueId third;
      require(ncclGetUniqueId(&third));
      ncclComm_t never = nullptr;
      setup = ncclCommInitRank(&never, 2, third, 0);
      EXPECT_EQ(ncclCommDestroy(communicators[1]), ncclSuccess);
    } else {
      require(cudaSetDevice(2));
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
      vgpu::stop_host_threads();
    }
  });
  EXPECT_NE(setup, ncclSuccess);
  EXPECT_NE(work, cudaSuccess);
  EXPECT_FALSE(vgpu::failure_reported());
}

}  // namespace
}  // namespace virtual_only
