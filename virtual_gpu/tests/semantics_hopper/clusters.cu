// Clusters: ranks, the cluster barrier, other blocks' shared memory, remote arrivals.
#include "clusters.cuh"
#include "overlap/gpu/wgmma.hpp"

namespace semantics {
namespace {

using ClusterTest = HopperTest;
constexpr int kThreads = 64;

__global__ void __cluster_dims__(2, 1, 1) tell_ranks(int* to) {
  if (threadIdx.x != 0) return;
  int* mine = to + 4 * blockIdx.x;
  mine[0] = static_cast<int>(ptx::get_sreg_cluster_ctarank());
  mine[1] = static_cast<int>(ptx::get_sreg_cluster_nctarank());
  mine[2] = static_cast<int>(ptx::get_sreg_clusterid_x());
  mine[3] = static_cast<int>(ptx::get_sreg_nclusterid_x());
}

TEST_F(ClusterTest, BlocksOfAClusterAreConsecutive) {
  const DeviceArray<int> to(16, -1);
  tell_ranks<<<4, 32>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{0, 2, 0, 2, 1, 2, 0, 2, 0, 2, 1, 2, 1, 2, 1, 2}));
}

__global__ void tell_ranks_without_clusters(int* to) {
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  to[2 * blockIdx.x] = static_cast<int>(ptx::get_sreg_cluster_ctarank());
  to[2 * blockIdx.x + 1] = static_cast<int>(ptx::get_sreg_cluster_nctarank());
}

TEST_F(ClusterTest, WithoutAnAttributeABlockIsAClusterOfItsOwn) {
  const DeviceArray<int> to(6, -1);
  tell_ranks_without_clusters<<<3, 1>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{0, 1, 0, 1, 0, 1}));
}

TEST_F(ClusterTest, TheLaunchMayMakeClusters) {
  const DeviceArray<int> to(8, -1);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = 4;
  config.blockDim = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_OK(cudaLaunchKernelEx(&config, tell_ranks_without_clusters, to.data()));
  EXPECT_EQ(to.values(), (std::vector<int>{0, 2, 1, 2, 0, 2, 1, 2}));
}

// Real GPUs may hold fewer clusters than their multiprocessors would make: each cluster is on one GPC.
TEST_F(ClusterTest, OccupancyCountsClusters) {
  int multiprocessors = 0, pairs = 0, fours = 0, declared = 0;
  CUDA_OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  cudaLaunchConfig_t config{};
  config.gridDim = 4;
  config.blockDim = 1024;
  CUDA_OK(cudaOccupancyMaxActiveClusters(&declared, tell_ranks, &config));
  config.attrs = &attribute;
  config.numAttrs = 1;
  attribute.val.clusterDim = {2, 1, 1};
  CUDA_OK(cudaOccupancyMaxActiveClusters(&pairs, tell_ranks_without_clusters, &config));
  attribute.val.clusterDim = {4, 1, 1};
  CUDA_OK(cudaOccupancyMaxActiveClusters(&fours, tell_ranks_without_clusters, &config));
  const int blocks = 2 * multiprocessors;  // of 1,024 threads
  EXPECT_EQ(declared, pairs);
  EXPECT_GE(fours, 1);
  EXPECT_LE(4 * fours, blocks);
  EXPECT_LE(2 * pairs, blocks);
  EXPECT_GE(pairs, 2 * fours);
  config.blockDim = 1025;
  int too_large = -1;
  cudaOccupancyMaxActiveClusters(&too_large, tell_ranks_without_clusters, &config);  // none, or an error
  cudaGetLastError();
  EXPECT_LE(too_large, 0);
}

// Programming Guide, "Thread Block Clusters": the grid's size must be a multiple of the cluster's. It does
// not name the error.
TEST_F(ClusterTest, AGridThatIsNoMultipleOfTheClusterIsNotLaunched) {
  const DeviceArray<int> to(12, -1);
  tell_ranks<<<3, 32>>>(to.data());
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(to.values(), std::vector<int>(12, -1));
}

/// Every block writes its own memory and reads the other block's.
__global__ void __cluster_dims__(2, 1, 1) read_the_other_block(int* to) {
  __shared__ int words[kThreads];
  words[threadIdx.x] = static_cast<int>(100 * blockIdx.x + threadIdx.x);
  meet_cluster();
  const int* theirs = static_cast<const int*>(__cluster_map_shared_rank(words, cluster_partner()));
  to[blockIdx.x * kThreads + threadIdx.x] = theirs[kThreads - 1 - threadIdx.x];
  meet_cluster();  // no block exits while its memory is read
}

TEST_F(ClusterTest, ItsBarrierOrdersWhatBlocksDidBefore) {
  const DeviceArray<int> to(4 * kThreads, -1);
  read_the_other_block<<<4, kThreads>>>(to.data());
  std::vector<int> expected;
  for (int block : {1, 0, 3, 2}) {
    for (int i = kThreads - 1; i >= 0; --i) expected.push_back(100 * block + i);
  }
  EXPECT_EQ(to.values(), expected);
}

/// Between arrive and wait a thread may do other work.
__global__ void __cluster_dims__(2, 1, 1) arrive_early(int* to) {
  __shared__ int word;
  int sum = 0;
  for (int round = 0; round < 5; ++round) {
    if (threadIdx.x == 0) word = static_cast<int>(10 * round + blockIdx.x);
    ptx::barrier_cluster_arrive(ptx::sem_release);
    sum += round;
    ptx::barrier_cluster_wait(ptx::sem_acquire);
    sum += *static_cast<const int*>(__cluster_map_shared_rank(&word, cluster_partner()));
    meet_cluster();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = sum;
}

TEST_F(ClusterTest, ArrivalAndWaitMayBeApart) {
  const DeviceArray<int> to(2, -1);
  arrive_early<<<2, kThreads>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{10 + 100 + 5, 10 + 100}));
}

/// The barrier does not wait for exited threads.
__global__ void __cluster_dims__(2, 1, 1) meet_in_part(int* to) {
  if (threadIdx.x >= 32 * (1 + blockIdx.x)) return;
  meet_cluster();
  if (threadIdx.x == 0) to[blockIdx.x] = 1;
}

TEST_F(ClusterTest, ItsBarrierDoesNotWaitForThreadsThatHaveEnded) {
  const DeviceArray<int> to(2, -1);
  meet_in_part<<<2, kThreads>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{1, 1}));
}

/// Two declarations, in different order in each block: an address refers to the same variable in both.
__global__ void __cluster_dims__(2, 1, 1) name_addresses(int* to) {
  extern __shared__ int dynamic[];
  __shared__ int first, second;
  if (threadIdx.x == 0) {
    first = static_cast<int>(10 + blockIdx.x);
    second = static_cast<int>(20 + blockIdx.x);
    dynamic[3] = static_cast<int>(30 + blockIdx.x);
  }
  meet_cluster();
  if (threadIdx.x == 0) {
    const int* addresses[] = {&first, &second, &dynamic[3]};
    for (int i = 0; i < 3; ++i) {
      const void* there = __cluster_map_shared_rank(addresses[i], cluster_partner());
      to[8 * blockIdx.x + 2 * i] = *static_cast<const int*>(there);
      to[8 * blockIdx.x + 2 * i + 1] = static_cast<int>(ptx::getctarank(ptx::space_cluster, there));
    }
    to[8 * blockIdx.x + 6] = static_cast<int>(ptx::getctarank(ptx::space_cluster, &first));
    to[8 * blockIdx.x + 7] = *static_cast<int*>(__cluster_map_shared_rank(&second, blockIdx.x));
  }
  meet_cluster();
}

TEST_F(ClusterTest, AnAddressIsMappedToTheSamePlaceOfAnotherBlock) {
  const DeviceArray<int> to(16, -1);
  name_addresses<<<2, 32, 64>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{11, 1, 21, 1, 31, 1, 0, 20, 10, 0, 20, 0, 30, 0, 1, 21}));
}

/// Threads of both blocks write, then arrive at block 0's barrier; block 0 then reads.
__global__ void __cluster_dims__(2, 1, 1) gather_at_rank_0(int* to) {
  __shared__ std::uint64_t barrier;
  __shared__ int words[2 * kThreads];
  start_barrier(&barrier, 2 * kThreads);
  meet_cluster();
  int* theirs = static_cast<int*>(__cluster_map_shared_rank(words, 0));
  theirs[blockIdx.x * kThreads + threadIdx.x] = static_cast<int>(1000 * blockIdx.x + threadIdx.x);
  arrive_at(&barrier, 0);
  if (blockIdx.x == 0) {
    await_phase_of_cluster(&barrier, 0);
    to[threadIdx.x] = words[kThreads - 1 - threadIdx.x];
    to[kThreads + threadIdx.x] = words[2 * kThreads - 1 - threadIdx.x];
  }
}

TEST_F(ClusterTest, AnArrivalInAnotherBlockOrdersWhatCameBeforeIt) {
  const DeviceArray<int> to(2 * kThreads, -1);
  gather_at_rank_0<<<2, kThreads>>>(to.data());
  std::vector<int> expected;
  for (int i = kThreads - 1; i >= 0; --i) expected.push_back(i);
  for (int i = kThreads - 1; i >= 0; --i) expected.push_back(1000 + i);
  EXPECT_EQ(to.values(), expected);
}

/// A word passes back and forth between two blocks.
__global__ void __cluster_dims__(2, 1, 1) ping_pong_of_blocks(int* to, int rounds) {
  __shared__ std::uint64_t came;
  __shared__ int word;
  start_barrier(&came, 1);
  if (threadIdx.x == 0) word = 0;
  meet_cluster();
  if (threadIdx.x == 0) {
    const unsigned partner = cluster_partner();
    int* theirs = static_cast<int*>(__cluster_map_shared_rank(&word, partner));
    for (int i = 0; i < rounds; ++i) {
      if (blockIdx.x == 1) await_phase_of_cluster(&came, i);
      *theirs = static_cast<int>(2 * word + 1);
      arrive_at(&came, partner);
      if (blockIdx.x == 0) await_phase_of_cluster(&came, i);
    }
    to[blockIdx.x] = word;
  }
  meet_cluster();
}

TEST_F(ClusterTest, PhasesOfTwoBlocksAlternate) {
  const DeviceArray<int> to(2, -1);
  ping_pong_of_blocks<<<2, 32>>>(to.data(), 5);
  EXPECT_EQ(to.values(), (std::vector<int>{1023, 511}));
}

/// An arrival may count several times, also at another block's barrier.
__global__ void __cluster_dims__(2, 1, 1) arrive_several_times(int* to) {
  __shared__ std::uint64_t barrier;
  start_barrier(&barrier, 5);
  meet_cluster();
  if (threadIdx.x == 0) {
    auto* theirs = static_cast<std::uint64_t*>(__cluster_map_shared_rank(&barrier, cluster_partner()));
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, theirs, 3);
    ptx::mbarrier_arrive(&barrier, 2);
    await_phase_of_cluster(&barrier, 0);
    to[blockIdx.x] = 1;
  }
  meet_cluster();
}

TEST_F(ClusterTest, AnArrivalInAnotherBlockMayCountSeveralTimes) {
  const DeviceArray<int> to(2, -1);
  arrive_several_times<<<2, 32>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{1, 1}));
}

/// wgmma.hpp's arrival (overlap/gpu): at the same mbarrier of each block of the cluster.
__global__ void __cluster_dims__(2, 1, 1) arrive_in_both_blocks(int* to) {
  __shared__ std::uint64_t barrier;
  start_barrier(&barrier, 2);
  meet_cluster();
  if (threadIdx.x == 0) {
    for (unsigned rank = 0; rank < 2; ++rank) overlap::wgmma::arrive_in_block(&barrier, rank);
    await_phase(&barrier, 0);
    to[blockIdx.x] = 1;
  }
  meet_cluster();
}

TEST_F(ClusterTest, AnArrivalInABlockIsAtItsOwnMbarrier) {
  const DeviceArray<int> to(2, -1);
  arrive_in_both_blocks<<<2, 32>>>(to.data());
  EXPECT_EQ(to.values(), (std::vector<int>{1, 1}));
}

/// More clusters than fit on a GPU at once.
TEST_F(ClusterTest, ManyClustersRunOneAfterTheOther) {
  constexpr int kBlocks = 600;
  const DeviceArray<int> to(kBlocks * kThreads, -1);
  read_the_other_block<<<kBlocks, kThreads>>>(to.data());
  const std::vector<int> values = to.values();
  int wrong = 0;
  for (int i = 0; i < kBlocks * kThreads; ++i) {
    const int block = i / kThreads ^ 1;
    wrong += values[i] != 100 * block + kThreads - 1 - i % kThreads;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace semantics
