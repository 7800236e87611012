// NCCL with one host thread for each rank, on real and virtual GPUs: setup by a unique id, calls without
// groups, ranks at different speeds.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <vector>

#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

class RanksNcclTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    int gpus = 0;
    CUDA_CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < GetParam()) GTEST_SKIP() << "needs " << GetParam() << " GPUs";
  }
};
INSTANTIATE_TEST_SUITE_P(Sizes, RanksNcclTest, testing::Values(1, 2, 3, 4, 8));

/// A rank's communicator of all ranks, created and destroyed explicitly.
class Communicator {
 public:
  explicit Communicator(Rank& rank) {
    struct Id {  // NCCL's type has no name of its own, and nvcc 13.0 breaks off at a std::vector of such a
                 // type
      ncclUniqueId value;
    } id{};
    if (rank.id() == 0) NCCL_CHECK(ncclGetUniqueId(&id.value));
    id = rank.exchange(id)[0];
    NCCL_CHECK(ncclCommInitRank(&handle_, rank.size(), id.value, rank.id()));
  }
  ~Communicator() { EXPECT_EQ(ncclCommDestroy(handle_), ncclSuccess); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  operator ncclComm_t() const { return handle_; }

 private:
  ncclComm_t handle_ = nullptr;
};

__global__ void set(int* data, int value) { data[threadIdx.x] = value; }
constexpr int kCount = 128;

std::vector<int> values_of(const DeviceBuffer<int>& buffer) {
  std::vector<int> values(buffer.size());
  CUDA_CHECK(cudaMemcpy(values.data(), buffer.data(), buffer.bytes(), cudaMemcpyDeviceToHost));
  return values;
}

TEST_P(RanksNcclTest, SetupTellsEachRankItsPlace) {
  run_ranks(GetParam(), [](Rank& rank) {
    const Communicator communicator(rank);
    int number = -1, count = -1, device = -1;
    NCCL_CHECK(ncclCommUserRank(communicator, &number));
    NCCL_CHECK(ncclCommCount(communicator, &count));
    NCCL_CHECK(ncclCommCuDevice(communicator, &device));
    EXPECT_EQ(number, rank.id());
    EXPECT_EQ(count, rank.size());
    EXPECT_EQ(device, rank.device());
  });
}

// The ranks wait for each other only in NCCL; rank r has r more kernels before each call.
TEST_P(RanksNcclTest, ManyCallsAtEachRanksOwnPace) {
  run_ranks(GetParam(), [](Rank& rank) {
    const ncclComm_t communicator = rank.nccl();
    DeviceBuffer<int> data(rank.device(), kCount), gathered(rank.device(), rank.size());
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < rank.id(); ++i) set<<<1, kCount, 0, rank.stream()>>>(data.data(), -1);
      set<<<1, kCount, 0, rank.stream()>>>(data.data(), (round + 1) * (rank.id() + 1));
      NCCL_CHECK(
          ncclAllReduce(data.data(), data.data(), kCount, ncclInt, ncclSum, communicator, rank.stream()));
      NCCL_CHECK(ncclBroadcast(data.data(), data.data(), 1, ncclInt, round % rank.size(), communicator,
                               rank.stream()));
      if (round % 3 == 0) rank.synchronize(rank.stream());
    }
    NCCL_CHECK(ncclAllGather(data.data() + 5, gathered.data(), 1, ncclInt, communicator, rank.stream()));
    rank.synchronize(rank.stream());
    const int sum = 10 * rank.size() * (rank.size() + 1) / 2;
    for (const int value : values_of(data)) ASSERT_EQ(value, sum);
    for (const int value : values_of(gathered)) ASSERT_EQ(value, sum);
  });
}

// Each rank passes on the value that it received: after P - 1 steps every rank has every value. Groups are
// per thread.
TEST_P(RanksNcclTest, RingAllGatherBySendsAndReceives) {
  run_ranks(GetParam(), [](Rank& rank) {
    const ncclComm_t communicator = rank.nccl();
    DeviceBuffer<int> slots(rank.device(), kCount * rank.size());
    const auto slot = [&](int shard) { return slots.data() + shard * kCount; };
    set<<<1, kCount, 0, rank.stream()>>>(slot(rank.id()), rank.id() + 100);
    for (int step = 0; step + 1 < rank.size(); ++step) {
      const int out = (rank.id() - step + rank.size()) % rank.size();
      const int in = (out + rank.size() - 1) % rank.size();
      NCCL_CHECK(ncclGroupStart());
      NCCL_CHECK(ncclSend(slot(out), kCount, ncclInt, rank.next(), communicator, rank.stream()));
      NCCL_CHECK(ncclRecv(slot(in), kCount, ncclInt, rank.previous(), communicator, rank.stream()));
      NCCL_CHECK(ncclGroupEnd());
    }
    rank.synchronize(rank.stream());
    const std::vector<int> values = values_of(slots);
    for (int shard = 0; shard < rank.size(); ++shard) {
      for (int i = 0; i < kCount; ++i) ASSERT_EQ(values[shard * kCount + i], shard + 100) << rank.id();
    }
  });
}

}  // namespace
}  // namespace overlap
