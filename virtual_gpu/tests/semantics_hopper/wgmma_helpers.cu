// Helpers of wgmma kernels: elected lanes, named barriers, stored matrices, register allocation.
#include "wgmma_test.hpp"

namespace semantics {
namespace {

using WgmmaHelpersTest = WgmmaTest;

/// The lane that each warp elects, twice.
__global__ void elect_twice(unsigned int* lanes) {
  const unsigned int first =
      static_cast<unsigned int>(__ballot_sync(0xffffffffu, wgmma::elect_one() ? 1 : 0));
  const unsigned int second =
      static_cast<unsigned int>(__ballot_sync(0xffffffffu, wgmma::elect_one() ? 1 : 0));
  if (threadIdx.x % 32 == 0) {
    lanes[threadIdx.x / 32 * 2] = first;
    lanes[threadIdx.x / 32 * 2 + 1] = second;
  }
}

TEST_F(WgmmaHelpersTest, OneLaneOfAWarpIsElectedTheSameEachTime) {
  const DeviceArray<unsigned int> lanes(8, 0);
  elect_twice<<<1, 128>>>(lanes.data());
  const std::vector<unsigned int> got = lanes.values();
  for (std::size_t warp = 0; warp < 4; ++warp) {
    const unsigned int elected = got[2 * warp];
    EXPECT_TRUE(elected != 0 && (elected & (elected - 1)) == 0) << "lanes " << elected;
    EXPECT_EQ(got[2 * warp + 1], elected);
  }
}

/// Two halves of the block, each with its own barrier and number of rounds.
__global__ void two_halves(int* to) {
  __shared__ int words[128];
  const int half = static_cast<int>(threadIdx.x) / 64, rank = static_cast<int>(threadIdx.x) % 64;
  words[threadIdx.x] = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 3 + 2 * half; ++round) {
    wgmma::named_barrier(1 + half, 64);
    const int other = words[64 * half + 63 - rank];
    wgmma::named_barrier(1 + half, 64);
    words[threadIdx.x] = static_cast<int>(other + 1);
  }
  to[threadIdx.x] = words[threadIdx.x];
}

TEST_F(WgmmaHelpersTest, NamedBarriersOrderThoseWhoCome) {
  const DeviceArray<int> to(128, -1);
  two_halves<<<1, 128>>>(to.data());
  const std::vector<int> got = to.values();
  for (int i = 0; i < 128; ++i) {
    const int half = i / 64, rounds = 3 + 2 * half;
    ASSERT_EQ(got[i], 64 * half + 63 - i % 64 + rounds) << i;  // an odd number of exchanges
  }
}

/// Two of three warps use a barrier; the third does not.
__global__ void two_of_three_warps(int* to) {
  __shared__ int words[32];
  if (threadIdx.x < 32) words[threadIdx.x] = static_cast<int>(threadIdx.x + 5);
  if (threadIdx.x < 64) wgmma::named_barrier(15, 64);
  if (threadIdx.x >= 32 && threadIdx.x < 64) to[threadIdx.x - 32] = words[63 - threadIdx.x];
}

TEST_F(WgmmaHelpersTest, ABarrierOfTwoWarpsDoesNotWaitForTheThird) {
  const DeviceArray<int> to(32, -1);
  two_of_three_warps<<<1, 96>>>(to.data());
  std::vector<int> expected = counted<int>(32, 5);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(to.values(), expected);
}

/// Lane 8 j + i holds the address of row i of matrix j: the rows of the four matrices are interleaved.
__device__ inline int row_of(int lane) { return lane % 8 * 4 + lane / 8; }

/// Lane l holds of matrix j elements 2 (l % 4) and + 1 of row l / 4: each is 64 j + 8 row + column.
__device__ inline void fill_pairs(std::uint32_t (&pairs)[4]) {
  const std::uint32_t lane = threadIdx.x % 32, first = lane / 4 * 8 + lane % 4 * 2;
  for (std::uint32_t j = 0; j < 4; ++j) pairs[j] = (64 * j + first) | (64 * j + first + 1) << 16;
}

__global__ void store_four_matrices(std::uint16_t* to) {
  alignas(128) __shared__ std::uint16_t rows[32][8];
  std::uint32_t pairs[4];
  fill_pairs(pairs);
  wgmma::store_matrix(rows[row_of(static_cast<int>(threadIdx.x))], pairs);
  __syncwarp();
  for (int i = 0; i < 8; ++i) to[threadIdx.x * 8 + i] = rows[threadIdx.x][i];
}

std::vector<std::uint16_t> four_matrices() {
  std::vector<std::uint16_t> rows;
  for (int row = 0; row < 32; ++row) {
    for (int column = 0; column < 8; ++column)
      rows.push_back(static_cast<std::uint16_t>(64 * (row % 4) + 8 * (row / 4) + column));
  }
  return rows;
}

TEST_F(WgmmaHelpersTest, StoredMatricesHaveTheRowsThatTheLanesName) {
  const DeviceArray<std::uint16_t> to(256, 9999);
  store_four_matrices<<<1, 32>>>(to.data());
  EXPECT_EQ(to.values(), four_matrices());
}

/// After a proxy fence a tensor store reads store_matrix's data. The elected lane issues and waits.
__global__ void store_by_tensor(const __grid_constant__ CUtensorMap map, std::uint16_t first) {
  alignas(128) __shared__ std::uint16_t rows[32][8];
  wgmma::prefetch_map(&map);
  std::uint32_t pairs[4];
  fill_pairs(pairs);
  for (std::uint32_t& pair : pairs) pair += static_cast<std::uint32_t>(first) * 0x10001u;
  wgmma::store_matrix(rows[row_of(static_cast<int>(threadIdx.x))], pairs);
  ptx::fence_proxy_async(ptx::space_shared);
  __syncwarp();
  if (wgmma::elect_one()) {
    const std::int32_t at[2] = {0, 0};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, rows);
    ptx::cp_async_bulk_commit_group();
  }
  if (wgmma::elect_one()) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // groups are per thread
}

TEST_F(WgmmaHelpersTest, ATensorStoreBringsStoredMatrices) {
  const DeviceArray<std::uint16_t> to(256, 9999);
  store_by_tensor<<<1, 32>>>(map_of(Tensor<std::uint16_t>{to.data(), {8, 32}, {8}, {8, 32}}), 100);
  std::vector<std::uint16_t> expected = four_matrices();
  for (std::uint16_t& value : expected) value = static_cast<std::uint16_t>(value + 100);
  EXPECT_EQ(to.values(), expected);
}

/// One warpgroup releases registers, the other acquires them; both continue.
__global__ __launch_bounds__(256, 1) void hand_registers_over(int* to) {
  if (threadIdx.x < 128) {
    wgmma::registers_down<40>();
  } else {
    wgmma::registers_up<232>();
  }
  to[threadIdx.x] = static_cast<int>(threadIdx.x);
}

TEST_F(WgmmaHelpersTest, RegistersGoFromOneWarpgroupToAnother) {
  const DeviceArray<int> to(256, -1);
  hand_registers_over<<<1, 256>>>(to.data());
  EXPECT_EQ(to.values(), counted<int>(256));
}

}  // namespace
}  // namespace semantics
