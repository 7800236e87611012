// Chapter 21, GEMM and all-reduce in one kernel: with few rows a GEMM mainly reads B once. The epilogue sends
// its partial sums straight into the buffers of word_is_flag: no C in between, no second launch, and a tile
// is in transfer while others are still multiplied.
//
// The GEMM is chapter 16's rung "persistent", with tiles of 64 x 64; the epilogue is new.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/ptx>
#include <string>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "21_small_all_reduce/exchange.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::small_all_reduce {

namespace ptx = cuda::ptx;
using tensor_core_gemm::Corner;
using tensor_core_gemm::GroupedOrder;
using tensor_core_gemm::kSpan;
using tensor_core_gemm::Major;
using tensor_core_gemm::TilePlace;

/// When a kernel starts after the one before it in its stream.
enum class Launch {
  kUsual,      ///< when that kernel has ended
  kDependent,  ///< when that kernel allows it (programmatic dependent launch); its blocks wait for the end
};

/// Tile for few rows: 64 columns, so that many blocks read B; eight stages, for enough loads of B in flight,
/// or six, which leave room for a block of the next kernel.
template <Launch kLaunch>
using FewRows = tensor_core_gemm::Tile<64, 64, kLaunch == Launch::kDependent ? 6 : 8>;

inline constexpr int kTileRows = 64;     ///< of C, as in FewRows
inline constexpr int kTileColumns = 64;  ///< see kTileRows

/// Rows of A that are loaded: m, rounded up to a multiple of eight. (Boxes of 64 rows are slower for m = 1:
/// TMA fills the other rows with zeros in every stage; README.md has the times.)
__host__ __device__ constexpr int loaded_rows(int m) { return m < kTileRows ? (m + 7) / 8 * 8 : kTileRows; }

/// A block's shared memory.
template <SixteenBit T, typename Tile>
struct EpilogueMemory {
  tensor_core_gemm::Ring<T, Tile> ring;
  T partial[kTileRows * kTileColumns];  ///< a tile's sums, rounded, row by row
};

/// Called by all threads before the first load: clears the rows of A that no load fills.
template <SixteenBit T, typename Tile>
__device__ __forceinline__ void clear_other_rows(tensor_core_gemm::Ring<T, Tile>& ring, int rows) {
  for (auto& stage : ring.stages) {
    auto* vectors = reinterpret_cast<uint4*>(stage.a + rows * kSpan);
    for (int i = static_cast<int>(threadIdx.x); i < (kTileRows - rows) * 8; i += 2 * wgmma::kThreads)
      vectors[i] = {};
  }
  ptx::fence_proxy_async(ptx::space_shared);  // wgmma reads them
}

/// Called by one thread: loads all stages of the block's tiles, with `rows` rows of A.
///
/// B holds a layer's weights, which the kernel before does not write, so the first stages of B are loaded
/// while that kernel still runs (programmatic dependent launch). A may be its result.
template <SixteenBit T, typename Tile>
__device__ __forceinline__ void load_all(tensor_core_gemm::Ring<T, Tile>& ring, const CUtensorMap& a,
                                         const CUtensorMap& b, int rows, const GroupedOrder& order) {
  using Stage = tensor_core_gemm::Stage<T, Tile>;
  const auto load_b = [&](Stage& stage, TilePlace tile, int block, std::uint64_t* full) {
    const int bytes = rows * kSpan * int{sizeof(T)} + int{sizeof stage.b};  // of A, too
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, bytes);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.b, &b,
                              {tile.corner<Tile>().column, block * kSpan}, full);
  };
  const TilePlace first = order(static_cast<int>(blockIdx.x));
  int ahead = min(Tile::kStages, order.tiling.along_k);  // stages whose loads of B are in flight
  for (int block = 0; block < ahead; ++block) load_b(ring.stages[block], first, block, &ring.full[block]);
  cudaGridDependencySynchronize();
  tensor_core_gemm::load_tiles(ring, order, order.tiling.along_k,
                               [&](Stage& stage, TilePlace tile, int block, std::uint64_t* full) {
                                 if (ahead > 0) {
                                   --ahead;
                                 } else {
                                   load_b(stage, tile, block, full);
                                 }
                                 ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.a, &a,
                                                           {block * kSpan, tile.corner<Tile>().row}, full);
                               });
}

/// Called by the consumer warpgroup with its sums of the tile at `corner`: sends them to all other ranks, and
/// stores the sum over all ranks to C.
template <SixteenBit T>
__device__ __forceinline__ void send_and_sum(const wgmma::Fragment<kTileColumns>& sums, T* partial,
                                             Corner corner, const OnRanks<Words>& received, const Sets& sets,
                                             unsigned* stop, T* c, int m, int n) {
  constexpr int kPacksOfRow = kTileColumns / Vector<T>::kWidth, kPacks = kTileRows * kPacksOfRow;
  const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
  wgmma::named_barrier(1, wgmma::kThreads);  // the previous tile has been read
#pragma unroll
  for (int i = 0; i < kTileColumns / 2; i += 2) {  // two neighbours in a row
    const wgmma::Place place = wgmma::place<kTileColumns>(thread, i);
    *reinterpret_cast<std::uint32_t*>(partial + place.row * kTileColumns + place.column) =
        tensor_core_gemm::pack<T>(sums.value[i], sums.value[i + 1]);
  }
  wgmma::named_barrier(1, wgmma::kThreads);
  // Calls work(number of the pack in C, the pack as it is sent) for the thread's packs that lie in C.
  const auto for_each_pack = [&](const auto& work) {
    for (int pack = thread; pack < kPacks; pack += wgmma::kThreads) {
      const int row = corner.row + pack / kPacksOfRow;
      const int column = corner.column + pack % kPacksOfRow * Vector<T>::kWidth;
      if (row >= m || column >= n) continue;
      work((std::int64_t{row} * n + column) / Vector<T>::kWidth,
           sendable(reinterpret_cast<const Vector<T>*>(partial)[pack]));
    }
  };
  for_each_pack([&](std::int64_t i, const Words& own) { send_pack<T>(received, sets, i, own); });
  for_each_pack([&](std::int64_t i, const Words& own) {
    reinterpret_cast<Vector<T>*>(c)[i] = sum_of_packs<T>(received, sets, i, own, stop).rounded();
  });
}

/// C[m, n] on every rank = the sum of all ranks' A[m, k] B[k, n]. `received`: see word_is_flag().
template <SixteenBit T, typename Tile>
__global__ __launch_bounds__(2 * wgmma::kThreads,
                             2) void multiply_and_sum(const __grid_constant__ CUtensorMap a,
                                                      const __grid_constant__ CUtensorMap b,
                                                      OnRanks<Words> received, CallNumber calls, T* c, int m,
                                                      int n, GroupedOrder order) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<EpilogueMemory<T, Tile>*>(memory);
  const int rows = loaded_rows(m);
  if (threadIdx.x == 0) shared.ring.init();
  clear_other_rows(shared.ring, rows);
  __syncthreads();
  const bool multiplies = threadIdx.x < wgmma::kThreads;
  if (!multiplies && threadIdx.x / kWarp % 4 == 0 && wgmma::elect_one())
    load_all(shared.ring, a, b, rows, order);
  // Wait before using anything that the call before uses: its number, the buffers, C.
  cudaGridDependencySynchronize();
  const std::uint32_t call = calls.read();
  // Allow the next kernel to start. If triggered before the wait, a third kernel could start as well, and
  // take the multiprocessors that another rank's blocks need if ranks share a GPU.
  cudaTriggerProgrammaticLaunchCompletion();
  if (multiplies) {
    const Sets sets = {call, received.count, std::int64_t{m} * n / Vector<T>::kWidth};
    tensor_core_gemm::multiply_tiles<Major::kMN>(
        shared.ring, order, order.tiling.along_k, 0,
        [&](const wgmma::Fragment<kTileColumns>& sums, TilePlace tile) {
          send_and_sum(sums, shared.partial, tile.corner<Tile>(), received, sets, calls.stop, c, m, n);
        });
  }
  calls.end(call);
}

/// C = A B on every rank, where rank r has A[m, k_r] and B[k_r, n], with k_r by balanced_share(), in one
/// kernel.
template <SixteenBit T, Launch kLaunch = Launch::kUsual>
class SumInEpilogue {
 public:
  /// Collective. Throws Skip unless the GPU has compute capability 9.0, n is a multiple of 8 and k one of 8
  /// P, and as flagged_elements() does; UsageError as require_sizes() and multiprocessors_to_wait_on() do.
  SumInEpilogue(Rank& rank, MatmulShape whole, int set_aside = 0)
      : rank_(rank),
        shape_(own_shape(rank, whole)),
        blocks_(std::min(tensor_core_gemm::tiling_of<Tile>(shape_).tiles(),
                         tensor_core_gemm::multiprocessors_to_wait_on(rank, set_aside))),
        received_(rank, static_cast<std::size_t>(3 * rank.size() * whole.m * whole.n / Vector<T>::kWidth)),
        calls_(rank, 0, 3) {
    fill(rank, received_, {{kEmpty, kEmpty, kEmpty, kEmpty}});
    CUDA_CHECK(cudaFuncSetAttribute(multiply_and_sum<T, Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    int{sizeof(EpilogueMemory<T, Tile>)}));
    load_on_all_ranks(rank, multiply_and_sum<T, Tile>);
  }

  /// See GemmThen::run(). All pointers are aligned to 16 bytes.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    const TimelineScope name("multiply and sum");
    const int m = static_cast<int>(shape_.m);
    using tensor_core_gemm::tensor_map;
    cudaLaunchAttribute dependent = {};
    dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    dependent.val.programmaticStreamSerializationAllowed = kLaunch == Launch::kDependent ? 1 : 0;
    cudaLaunchConfig_t config = {};
    config.gridDim = static_cast<unsigned>(blocks_);
    config.blockDim = 2 * wgmma::kThreads;
    config.dynamicSmemBytes = sizeof(EpilogueMemory<T, Tile>);
    config.stream = stream;
    config.attrs = &dependent;
    config.numAttrs = 1;
    CUDA_CHECK(cudaLaunchKernelEx(
        &config, multiply_and_sum<T, Tile>, tensor_map(a, shape_.m, shape_.k, loaded_rows(m)),
        tensor_map(b, shape_.k, shape_.n, kSpan), on_ranks(rank_, received_), calls_.number(), c, m,
        static_cast<int>(shape_.n), GroupedOrder{tensor_core_gemm::tiling_of<Tile>(shape_), 1}));
  }

  /// Cost card of a rank's call.
  static Cost cost(MatmulShape whole, int ranks) { return WordIsFlag<T>::cost(whole.m * whole.n, ranks); }

 private:
  using Tile = FewRows<kLaunch>;

  /// The rank's GEMM. Throws Skip if rows are no multiple of 16 bytes, on all ranks alike.
  static MatmulShape own_shape(Rank& rank, MatmulShape whole) {
    flagged_elements<T>(rank, whole.m * whole.n);
    if (whole.n % 8 != 0 || whole.k % (8 * rank.size()) != 0) {
      throw Skip("TMA needs n to be a multiple of 8, and k one of " + std::to_string(8 * rank.size()));
    }
    const MatmulShape own = {whole.m, whole.n, whole.k / rank.size()};
    tensor_core_gemm::require_sizes(own);
    return own;
  }

  Rank& rank_;
  MatmulShape shape_;  // of the rank's GEMM
  int blocks_;
  PeerBuffer<Words> received_;  // [call mod 3][rank][pack]
  CallCounter calls_;
};

}  // namespace overlap::small_all_reduce
