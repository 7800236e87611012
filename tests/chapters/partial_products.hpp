// A rank's summand of C = X W in f32, by chapter 16's kernel: bit for bit that of chapter 19's sums.
#pragma once

#include <vector>

#include "16_tensor_core_gemm/specialised.cuh"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Stores the sums as they are. `c` is memory for f32, whatever its type says.
struct StoreInF32 {
  template <SixteenBit T, typename Tile>
  struct Staging {};

  template <typename Tile, SixteenBit T>
  __device__ static void store(const wgmma::Fragment<Tile::kN>& sum, T* c, const CUtensorMap&,
                               Staging<T, Tile>*, int row, int column, int m, int n) {
    const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
#pragma unroll
    for (int i = 0; i < Tile::kN / 2; ++i) {
      const auto place = wgmma::place<Tile::kN>(thread, i);
      if (row + place.row < m && column + place.column < n)
        reinterpret_cast<float*>(c)[std::int64_t{row + place.row} * n + column + place.column] = sum.value[i];
    }
  }
  __device__ static void finish() {}
};

/// x[m, k] w[k, n] in f32, with tiles of this shape.
template <SixteenBit T, typename Tile>
std::vector<float> partial_products(Rank& rank, MatmulShape shape, const T* x, const T* w) {
  using namespace tensor_core_gemm;
  using Kernel = Specialised<Tile, StoreInF32>;
  constexpr auto kernel = multiply_specialised<StoreInF32, T, Tile, Major::kMN>;
  constexpr int kBytes = Kernel::template shared_bytes<T>();
  const DeviceBuffer<float> c(rank.device(), static_cast<std::size_t>(shape.m * shape.n));
  const OperandMaps<T, Tile, Major::kMN> maps(x, w, shape);
  const Tiling tiling = tiling_of<Tile>(shape);
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  kernel<<<tiling.tiles(), Kernel::kThreads, kBytes, rank.stream()>>>(
      maps.a, maps.b, maps.a, reinterpret_cast<T*>(c.data()), static_cast<int>(shape.m),
      static_cast<int>(shape.n), GroupedOrder{tiling, 1});
  CUDA_CHECK(cudaGetLastError());
  rank.synchronize(rank.stream());
  return on_host(c.data(), shape.m * shape.n);
}

}  // namespace overlap
