// A whole GEMM as in the chapters: a producer warpgroup, two consumers, a ring of stages between them, and an
// epilogue by tensor stores.
#include <cstring>

#include "wgmma_test.hpp"

namespace semantics {
namespace {

using WgmmaPipelineTest = WgmmaTest;
constexpr int kConsumers = 2, kStages = 3, kStageDepth = 64, kColumns = 64;
constexpr Layout kA{Major::kK, Swizzle::k128, 64 * kConsumers, kStageDepth};
constexpr Layout kB{Major::kMN, Swizzle::k128, kColumns, kStageDepth};
constexpr int kABytes = kA.bytes(), kStageBytes = kABytes + kB.bytes(), kTileBytes = 2 * 64 * kColumns;
// The ring, a tile of C for each consumer, and padding to align to 1024 bytes.
constexpr int kSharedBytes = kStages * kStageBytes + kConsumers * kTileBytes + 1024;

template <class T>
__device__ std::uint32_t pair_of(float first, float second) {
  const T pair[2] = {T(first), T(second)};
  std::uint32_t bits;
  std::memcpy(&bits, pair, sizeof bits);
  return bits;
}

/// A fragment as 16-bit numbers, row by row, at `tile`.
template <class T>
__device__ void store_tile(const wgmma::Fragment<kColumns>& d, T* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int row = 16 * warp + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
  for (int i = 0; i < kColumns / 2; i += 8) {  // 16 columns: four matrices, two below one another
    const std::uint32_t pairs[4] = {
        pair_of<T>(d.value[i], d.value[i + 1]), pair_of<T>(d.value[i + 2], d.value[i + 3]),
        pair_of<T>(d.value[i + 4], d.value[i + 5]), pair_of<T>(d.value[i + 6], d.value[i + 7])};
    wgmma::store_matrix(tile + row * kColumns + 2 * i + lane / 16 * 8, pairs);
  }
}

/// C [128, 64] = A [128, 64 steps] B [64 steps, 64] for each block; its part of A is further down, that of B
/// further to the right.
template <class T>
__global__ __launch_bounds__(128 * (1 + kConsumers),
                             1) void whole_product(const __grid_constant__ CUtensorMap a_map,
                                                   const __grid_constant__ CUtensorMap b_map,
                                                   const __grid_constant__ CUtensorMap c_map, int steps,
                                                   int tiles) {
  extern __shared__ std::byte dynamic[];
  __shared__ std::uint64_t full[kStages], empty[kStages];
  std::byte* ring = dynamic + (1024 - __cvta_generic_to_shared(dynamic) % 1024) % 1024;
  for (int s = 0; s < kStages; ++s) {
    start_barrier(&full[s], 1);
    start_barrier(&empty[s], kConsumers);
  }
  const int warpgroup = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (warpgroup == kConsumers) {
    wgmma::registers_down<24>();
    if (threadIdx.x / 32 != 4 * kConsumers || !wgmma::elect_one()) return;
    wgmma::prefetch_map(&a_map);
    wgmma::prefetch_map(&b_map);
    for (int i = 0; i < steps * tiles; ++i) {
      const int s = i % kStages, tile = i / steps, k = i % steps * kStageDepth;
      await_phase(&empty[s], static_cast<std::uint32_t>(i / kStages + 1) & 1);
      expect_bytes(&full[s], kStageBytes);
      const std::int32_t a_at[2] = {k, 0}, b_at[2] = {tile * kColumns, k};
      std::byte* stage = ring + s * kStageBytes;
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage, &a_map, a_at, &full[s]);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage + kABytes, &b_map, b_at,
                                &full[s]);
    }
    return;
  }
  wgmma::registers_up<232>();
  constexpr Layout a_layout = kA, b_layout = kB;
  T* own_tile = reinterpret_cast<T*>(ring + kStages * kStageBytes + warpgroup * kTileBytes);
  for (int tile = 0; tile < tiles; ++tile) {
    wgmma::Fragment<kColumns> d;
    for (int step = 0; step < steps; ++step) {
      const int i = tile * steps + step, s = i % kStages;
      await_phase(&full[s], static_cast<std::uint32_t>(i / kStages) & 1);
      const std::byte* stage = ring + s * kStageBytes;
      wgmma::fence();
      for (int slice = 0; slice < kStageDepth / wgmma::kDepth; ++slice) {
        wgmma::mma<T, Major::kK, Major::kMN>(d, slice_of(a_layout, stage + warpgroup * 64 * 128, slice),
                                             slice_of(b_layout, stage + kABytes, slice), step + slice > 0);
      }
      wgmma::commit();
      wgmma::wait<1>(d);  // the previous step
      if (step > 0 && threadIdx.x % wgmma::kThreads == 0) ptx::mbarrier_arrive(&empty[(i - 1) % kStages]);
    }
    wgmma::wait<0>(d);
    if (threadIdx.x % wgmma::kThreads == 0) {
      ptx::mbarrier_arrive(&empty[((tile + 1) * steps - 1) % kStages]);
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // the previous tile
    }
    wgmma::named_barrier(1 + warpgroup, wgmma::kThreads);
    store_tile(d, own_tile);
    ptx::fence_proxy_async(ptx::space_shared);
    wgmma::named_barrier(1 + warpgroup, wgmma::kThreads);
    if (threadIdx.x % wgmma::kThreads == 0) {
      const std::int32_t c_at[2] = {tile * kColumns, 64 * warpgroup};
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &c_map, c_at, own_tile);
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x % wgmma::kThreads == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

/// Compares C, `tiles` tiles of columns, with a rounded reference.
template <class T>
void expect_whole_product(int steps, int tiles) {
  const int depth = steps * kStageDepth, columns = tiles * kColumns, rows = kA.rows;
  const DeviceArray<T> a(operand<T>({Major::kK, kA.swizzle, rows, depth}, a_element));
  const DeviceArray<T> b(operand<T>({Major::kMN, kB.swizzle, columns, depth}, b_element));
  const DeviceArray<T> c(static_cast<std::size_t>(rows * columns));
  const auto size = [](int value) { return static_cast<cuuint64_t>(value); };
  const CUtensorMap a_map = map_of(Tensor<T>{a.data(),
                                             {size(depth), size(rows)},
                                             {size(depth)},
                                             {kStageDepth, static_cast<cuuint32_t>(rows)},
                                             CU_TENSOR_MAP_SWIZZLE_128B});
  const CUtensorMap b_map = map_of(Tensor<T>{b.data(),
                                             {size(columns), size(depth)},
                                             {size(columns)},
                                             {kColumns, kStageDepth},
                                             CU_TENSOR_MAP_SWIZZLE_128B});
  const CUtensorMap c_map =
      map_of(Tensor<T>{c.data(), {size(columns), size(rows)}, {size(columns)}, {kColumns, 64}});
  require(cudaFuncSetAttribute(whole_product<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  whole_product<T><<<1, 128 * (1 + kConsumers), kSharedBytes>>>(a_map, b_map, c_map, steps, tiles);
  const std::vector<T> got = c.values();
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = 0;
      for (int k = 0; k < depth; ++k) sum += a_element(row, k) * b_element(column, k);
      ASSERT_EQ(static_cast<float>(got[static_cast<std::size_t>(row * columns + column)]),
                static_cast<float>(T(sum)))
          << steps << " steps, " << tiles << " tiles: row " << row << ", column " << column;
    }
  }
}

TEST_F(WgmmaPipelineTest, AProducerAndTwoConsumersOverARingOfStages) {
  expect_whole_product<__half>(1, 1);
  expect_whole_product<__half>(4, 1);
  expect_whole_product<__half>(3, 3);
}

TEST_F(WgmmaPipelineTest, TheSameOfBfloat16) { expect_whole_product<__nv_bfloat16>(5, 2); }

}  // namespace
}  // namespace semantics
