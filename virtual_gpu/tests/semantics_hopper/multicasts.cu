// Multicasts: one bulk copy into the shared memory of several blocks of a cluster.
#include "clusters.cuh"

namespace semantics {
namespace {

using MulticastTest = HopperTest;
constexpr int kRows = 8, kColumns = 32, kBox = kRows * kColumns;  // of a box
constexpr std::uint32_t kBoxBytes = kBox * sizeof(int);

/// A tensor of `boxes` boxes, one below the other.
CUtensorMap map_of_boxes(const DeviceArray<int>& data, int boxes,
                         CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  return map_of<int>({data.data(),
                      {kColumns, static_cast<cuuint64_t>(kRows * boxes)},
                      {kColumns},
                      {kColumns, kRows},
                      swizzle});
}

/// Rank 0 multicasts a box to the blocks of the mask; each block waits at its own barrier.
__global__ void __cluster_dims__(2, 1, 1)
    fetch_for_blocks(const __grid_constant__ CUtensorMap map, int* to, std::uint16_t mask) {
  __shared__ std::uint64_t full;
  alignas(1024) __shared__ int box[kBox];
  start_barrier(&full, 1);
  const unsigned rank = ptx::get_sreg_cluster_ctarank();
  meet_cluster();
  const bool mine = (mask >> rank & 1) != 0;
  if (threadIdx.x == 0 && mine) expect_bytes(&full, kBoxBytes);
  if (threadIdx.x == 0 && rank == 0) {
    const std::int32_t at[] = {0, static_cast<std::int32_t>(kRows * ptx::get_sreg_clusterid_x())};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, at, &full, mask);
  }
  if (mine) {
    await_phase(&full, 0);
    for (int i = static_cast<int>(threadIdx.x); i < kBox; i += static_cast<int>(blockDim.x))
      to[blockIdx.x * kBox + i] = box[i];
  }
  meet_cluster();
}

TEST_F(MulticastTest, OneCopyReachesBothBlocks) {
  const DeviceArray<int> from(counted<int>(2 * kBox)), to(4 * kBox, -1);
  fetch_for_blocks<<<4, 64>>>(map_of_boxes(from, 2), to.data(), 3);
  std::vector<int> expected;
  for (int block = 0; block < 4; ++block) {
    const auto box = counted<int>(kBox, block / 2 * kBox);
    expected.insert(expected.end(), box.begin(), box.end());
  }
  EXPECT_EQ(to.values(), expected);
}

TEST_F(MulticastTest, TheMaskMayLeaveOutTheBlockThatIssuesIt) {
  const DeviceArray<int> from(counted<int>(kBox)), to(2 * kBox, -1);
  fetch_for_blocks<<<2, 64>>>(map_of_boxes(from, 1), to.data(), 2);
  std::vector<int> expected(kBox, -1);
  const auto box = counted<int>(kBox);
  expected.insert(expected.end(), box.begin(), box.end());
  EXPECT_EQ(to.values(), expected);
}

TEST_F(MulticastTest, EachBlockGetsTheBoxSwizzled) {
  const DeviceArray<int> from(counted<int>(kBox)), to(2 * kBox, -1);
  fetch_for_blocks<<<2, 64>>>(map_of_boxes(from, 1, CU_TENSOR_MAP_SWIZZLE_128B), to.data(), 3);
  std::vector<int> expected(2 * kBox);
  for (int i = 0; i < kBox; ++i) {
    const int row = i / kColumns, chunk = i % kColumns / 4;
    for (int block : {0, 1}) expected[block * kBox + row * kColumns + (chunk ^ row) * 4 + i % 4] = i;
  }
  EXPECT_EQ(to.values(), expected);
}

/// Each block multicasts half of the data; a barrier counts the bytes of both copies.
__global__ void __cluster_dims__(2, 1, 1) fetch_halves(const __grid_constant__ CUtensorMap map, int* to) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int boxes[2][kBox];
  start_barrier(&full, 1);
  const unsigned rank = ptx::get_sreg_cluster_ctarank();
  meet_cluster();
  if (threadIdx.x == 0) {
    expect_bytes(&full, 2 * kBoxBytes);
    const std::int32_t at[] = {0, static_cast<std::int32_t>(kRows * rank)};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, boxes[rank], &map, at, &full,
                              std::uint16_t{3});
  }
  await_phase(&full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kBox; i += static_cast<int>(blockDim.x))
    to[2 * kBox * blockIdx.x + i] = boxes[i / kBox][i % kBox];
  meet_cluster();
}

TEST_F(MulticastTest, BlocksFetchHalvesForEachOther) {
  const DeviceArray<int> from(counted<int>(2 * kBox)), to(4 * kBox, -1);
  fetch_halves<<<2, 64>>>(map_of_boxes(from, 2), to.data());
  std::vector<int> expected = counted<int>(2 * kBox);
  expected.insert(expected.end(), expected.begin(), expected.begin() + 2 * kBox);
  EXPECT_EQ(to.values(), expected);
}

/// A ring of stages that both blocks fill by halves. A stage is empty when both blocks have read it.
__global__ void __cluster_dims__(2, 1, 1)
    share_ring(const __grid_constant__ CUtensorMap map, unsigned* to, int boxes) {
  constexpr int kStages = 2;
  __shared__ std::uint64_t full[kStages], empty[kStages];
  alignas(128) __shared__ unsigned stages[kStages][2][kBox];
  for (std::uint64_t& barrier : full) start_barrier(&barrier, 1);
  for (std::uint64_t& barrier : empty) start_barrier(&barrier, 2);
  const unsigned rank = ptx::get_sreg_cluster_ctarank();
  meet_cluster();
  if (threadIdx.x == 0) {
    for (int i = 0; i < boxes; ++i) {
      const int stage = i % kStages;
      await_phase_of_cluster(&empty[stage], i / kStages + 1);
      expect_bytes(&full[stage], 2 * kBoxBytes);
      const std::int32_t at[] = {0, static_cast<std::int32_t>(kRows * (2 * i + rank))};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stages[stage][rank], &map, at,
                                &full[stage], std::uint16_t{3});
    }
  } else if (threadIdx.x == 32) {
    unsigned sum = 0;
    for (int i = 0; i < boxes; ++i) {
      const int stage = i % kStages;
      await_phase(&full[stage], i / kStages);
      for (int j = 0; j < 2 * kBox; j += 61)
        sum = static_cast<unsigned>(3 * sum + stages[stage][j / kBox][j % kBox]);
      ptx::fence_proxy_async(ptx::space_shared);  // reads before the next copy overwrites
      for (unsigned to_rank : {0u, 1u}) arrive_at(&empty[stage], to_rank);
    }
    to[blockIdx.x] = sum;
  }
  __syncwarp();
  meet_cluster();
}

TEST_F(MulticastTest, ARingIsSharedByTwoBlocks) {
  constexpr int kBoxes = 7;
  const DeviceArray<unsigned> to(2, 0u);
  const DeviceArray<int> from(counted<int>(2 * kBoxes * kBox));
  share_ring<<<2, 64>>>(map_of_boxes(from, 2 * kBoxes), to.data(), kBoxes);
  unsigned expected = 0;
  for (int i = 0; i < kBoxes; ++i) {
    for (int j = 0; j < 2 * kBox; j += 61) expected = 3 * expected + static_cast<unsigned>(2 * kBox * i + j);
  }
  EXPECT_EQ(to.values(), (std::vector<unsigned>{expected, expected}));
}

/// Elements outside the tensor are zero-filled in each block, and count as bytes.
TEST_F(MulticastTest, ABoxOutsideOfTheTensorComesAsZeros) {
  const DeviceArray<int> from(counted<int>(kBox, 1)), to(4 * kBox, -1);
  fetch_for_blocks<<<4, 64>>>(map_of_boxes(from, 1), to.data(), 3);
  std::vector<int> expected = counted<int>(kBox, 1);
  expected.insert(expected.end(), expected.begin(), expected.begin() + kBox);
  expected.resize(4 * kBox, 0);
  EXPECT_EQ(to.values(), expected);
}

}  // namespace
}  // namespace semantics
