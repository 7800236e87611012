// Bulk copies of consecutive bytes, their groups, and how ordinary writes become visible to them.
#include "hopper_test.hpp"

namespace semantics {
namespace {

using BulkCopyTest = HopperTest;
constexpr int kWords = 256;

/// Loads a row; all threads read it.
__global__ void bulk_load_row(const int* from, int* to) {
  __shared__ std::uint64_t barrier;
  alignas(128) __shared__ int row[kWords];
  start_barrier(&barrier, 1);
  if (threadIdx.x == 0) {
    expect_bytes(&barrier, sizeof row);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, row, from, sizeof row, &barrier);
  }
  await_phase(&barrier, 0);
  to[threadIdx.x] = row[kWords - 1 - threadIdx.x];
}

TEST_F(BulkCopyTest, AllWhoWaitSeeTheBytes) {
  std::vector<int> values = counted<int>(kWords, 9);
  const DeviceArray<int> from(values), to(kWords, -1);
  bulk_load_row<<<1, kWords>>>(from.data(), to.data());
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(to.values(), values);
}

/// All threads write a row; after a fence and a barrier one thread stores it.
__global__ void bulk_store_row(int* to, int first) {
  alignas(128) __shared__ int row[kWords];
  row[threadIdx.x] = static_cast<int>(first + static_cast<int>(threadIdx.x));
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, row, sizeof row);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

TEST_F(BulkCopyTest, AStoreBringsWhatAllThreadsWrote) {
  const DeviceArray<int> to(kWords, -1);
  bulk_store_row<<<1, kWords>>>(to.data(), 5);
  EXPECT_EQ(to.values(), counted<int>(kWords, 5));
}

/// After `.read` the source may change; the store writes the old bytes.
__global__ void store_then_overwrite(int* to) {
  alignas(128) __shared__ int row[kWords];
  for (int round = 0; round < 3; ++round) {
    row[threadIdx.x] = static_cast<int>(1000 * round + static_cast<int>(threadIdx.x));
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to + round * kWords, row, sizeof row);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }
}

TEST_F(BulkCopyTest, TheSourceMayChangeOnceItIsRead) {
  const DeviceArray<int> to(3 * kWords, -1);
  store_then_overwrite<<<1, kWords>>>(to.data());
  const std::vector<int> got = to.values();
  for (int i = 0; i < 3 * kWords; ++i) ASSERT_EQ(got[i], 1000 * (i / kWords) + i % kWords) << i;
}

/// Two groups: after wait_group 1 the older one is complete, also for ordinary reads.
__global__ void wait_for_older_group(int* memory, int* seen) {
  alignas(128) __shared__ int words[2][4];
  for (int i = 0; i < 8; ++i) words[i / 4][i % 4] = static_cast<int>(i + 1);
  ptx::fence_proxy_async();
  for (int group = 0; group < 2; ++group) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, memory + 4 * group, words[group],
                       sizeof words[group]);
    ptx::cp_async_bulk_commit_group();
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<1>());
  for (int i = 0; i < 4; ++i) seen[i] = memory[i];
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  for (int i = 4; i < 8; ++i) seen[i] = memory[i];
}

TEST_F(BulkCopyTest, GroupsEndInTheirOrder) {
  const DeviceArray<int> memory(8, -1), seen(8, -1);
  wait_for_older_group<<<1, 1>>>(memory.data(), seen.data());
  EXPECT_EQ(seen.values(), counted<int>(8, 1));
}

/// Loads, changes and stores a row in place: threads read and write bytes of asynchronous copies.
__global__ void add_to_row(int* memory, int value) {
  __shared__ std::uint64_t barrier;
  alignas(128) __shared__ int row[kWords];
  start_barrier(&barrier, 1);
  int* mine = memory + blockIdx.x * kWords;
  if (threadIdx.x == 0) {
    expect_bytes(&barrier, sizeof row);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, row, mine, sizeof row, &barrier);
  }
  await_phase(&barrier, 0);
  row[threadIdx.x] += value;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, mine, row, sizeof row);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

TEST_F(BulkCopyTest, KernelsInOneStreamNeedNoFence) {
  const DeviceArray<int> memory(counted<int>(5 * kWords));
  add_to_row<<<5, kWords>>>(memory.data(), 10);
  add_to_row<<<5, kWords>>>(memory.data(), 20);  // the first kernel's stores are complete
  EXPECT_EQ(memory.values(), counted<int>(5 * kWords, 30));
}

constexpr int kStages = 3, kConsumers = 128;

/// A ring of stages: one thread fills them, the others consume and release them.
__global__ void ring_of_stages(const int* from, int* to, int tiles) {
  __shared__ std::uint64_t full[kStages], empty[kStages];
  alignas(128) __shared__ int stage[kStages][kConsumers];
  for (int s = 0; s < kStages; ++s) {
    start_barrier(&full[s], 1);
    start_barrier(&empty[s], kConsumers);
  }
  if (threadIdx.x == kConsumers) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int s = tile % kStages;
      await_phase(&empty[s], tile / kStages + 1);
      expect_bytes(&full[s], sizeof stage[s]);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[s], from + tile * kConsumers,
                         sizeof stage[s], &full[s]);
    }
  } else if (threadIdx.x < kConsumers) {
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int s = tile % kStages;
      await_phase(&full[s], tile / kStages);
      sum += stage[s][kConsumers - 1 - threadIdx.x];
      ptx::fence_proxy_async(ptx::space_shared);  // reads before the next copy overwrites
      ptx::mbarrier_arrive(&empty[s]);
    }
    to[threadIdx.x] = sum;
  }
}

TEST_F(BulkCopyTest, ARingOfStages) {
  constexpr int kTiles = 11;
  const DeviceArray<int> from(counted<int>(kTiles * kConsumers)), to(kConsumers, -1);
  ring_of_stages<<<1, kConsumers + 32>>>(from.data(), to.data(), kTiles);
  const std::vector<int> got = to.values();
  for (int i = 0; i < kConsumers; ++i) {
    const int column = kConsumers - 1 - i;
    ASSERT_EQ(got[i], kTiles * column + kConsumers * kTiles * (kTiles - 1) / 2) << i;
  }
}

/// Block 0 writes a row, by threads or by a bulk store, and raises a flag; block 1 awaits it and loads the
/// row.
__global__ void row_behind_flag(int* memory, int* flag, int* to, bool by_store) {
  __shared__ std::uint64_t barrier;
  alignas(128) __shared__ int row[kWords];
  start_barrier(&barrier, 1);
  const cuda::atomic_ref<int, cuda::thread_scope_system> raised(*flag);
  if (blockIdx.x == 0) {
    (by_store ? row : memory)[threadIdx.x] = static_cast<int>(threadIdx.x + 3);
    ptx::fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      if (by_store) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, memory, row, sizeof row);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
      }
      raised.store(1, cuda::memory_order_release);
    }
  } else {
    if (threadIdx.x == 0) {
      while (raised.load(cuda::memory_order_acquire) == 0) {
      }
      ptx::fence_proxy_async(ptx::space_global);
      expect_bytes(&barrier, sizeof row);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, row, memory, sizeof row, &barrier);
    }
    await_phase(&barrier, 0);
    to[threadIdx.x] = row[threadIdx.x];
  }
}

TEST_F(BulkCopyTest, AFlagAndAFenceShowOrdinaryWritesToALoad) {
  const DeviceArray<int> memory(kWords, -1), flag(1, 0), to(kWords, -1);
  row_behind_flag<<<2, kWords>>>(memory.data(), flag.data(), to.data(), false);
  EXPECT_EQ(to.values(), counted<int>(kWords, 3));
}

TEST_F(BulkCopyTest, AFullWaitComesBeforeTheFlagOfAStore) {
  const DeviceArray<int> memory(kWords, -1), flag(1, 0), to(kWords, -1);
  row_behind_flag<<<2, kWords>>>(memory.data(), flag.data(), to.data(), true);
  EXPECT_EQ(to.values(), counted<int>(kWords, 3));
}

}  // namespace
}  // namespace semantics
