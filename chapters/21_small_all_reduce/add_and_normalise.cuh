// Chapter 21, all-reduce, residual and RMSNorm in one kernel: in a transformer's layer the residual and the
// norm after an all-reduce read and write the same few rows, so two more launches would take longer than the
// work.
//
// Source: TensorRT-LLM's allReduceFusionKernels (kARResidualRMSNorm), FlashInfer's trtllm_allreduce_fusion.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "21_small_all_reduce/exchange.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::small_all_reduce {

inline constexpr int kNormThreads = 1024;  ///< of a block, which computes one row at a time
inline constexpr int kPacksOfAThread = 2;  ///< packs of a row per thread, at most, in registers

/// Called by all threads of a block: the sum of their values, the same bits on every thread and rank and in
/// every run.
__device__ inline float sum_of_block(float value) {
  __shared__ float sums[kNormThreads / kWarp];
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  __syncthreads();  // all threads have read the previous row's sums
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  for (const float of_warp : sums) sum += of_warp;
  return sum;
}

/// A block first sends all of its rows, then adds and normalises row by row. Rows have `n` elements, a
/// multiple of a pack. `received` is as in word_is_flag().
template <Floating T>
__global__ void __launch_bounds__(kNormThreads)
    add_and_normalise(OnRanks<Words> received, CallNumber calls, const T* x, const T* gain, T* residual,
                      T* out, std::int64_t rows, std::int64_t n, float epsilon) {
  using Elements = Vector<T>;
  const std::uint32_t call = calls.read();
  const std::int64_t of_row = packs_of<Elements>(n);
  const Sets sets = {call, received.count, rows * of_row};
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (std::int64_t i = row * of_row + threadIdx.x; i < (row + 1) * of_row; i += blockDim.x)
      send_pack<T>(received, sets, i, sendable(load_pack<Elements>(x, i, rows * n)));
  }
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t begin = row * of_row;
    // Load residual and gain first, while the words are in transfer.
    Elements stream[kPacksOfAThread], gains[kPacksOfAThread];
    for (int p = 0; p < kPacksOfAThread; ++p) {
      const std::int64_t i = threadIdx.x + p * kNormThreads;
      if (i >= of_row) continue;
      stream[p] = load_pack<Elements>(residual, begin + i, rows * n);
      gains[p] = load_pack<Elements>(gain, i, n);
    }
    float squares = 0;
    for (int p = 0; p < kPacksOfAThread; ++p) {
      const std::int64_t i = begin + threadIdx.x + p * kNormThreads;
      if (i >= begin + of_row) continue;
      const Words own = sendable(load_pack<Elements>(x, i, rows * n));
      Sum<Elements> total = sum_of_packs<T>(received, sets, i, own, calls.stop);
      total.add(stream[p]);
      stream[p] = total.rounded();  // the norm uses the rounded residual, as the next layer does
      for (const T value : stream[p].values) squares += static_cast<float>(value) * static_cast<float>(value);
    }
    const float scale = 1.0f / sqrtf(sum_of_block(squares) / static_cast<float>(n) + epsilon);
    for (int p = 0; p < kPacksOfAThread; ++p) {
      const std::int64_t i = begin + threadIdx.x + p * kNormThreads;
      if (i >= begin + of_row) continue;
      store_pack(residual, i, rows * n, stream[p]);
      for (int j = 0; j < Elements::kWidth; ++j) {
        stream[p].values[j] = static_cast<T>(static_cast<float>(gains[p].values[j]) *
                                             (static_cast<float>(stream[p].values[j]) * scale));
      }
      store_pack(out, i, rows * n, stream[p]);
    }
  }
  calls.end(call);
}

/// residual += the sum of all ranks' x, then out = gain * residual / sqrt(mean of residual^2 + epsilon), row
/// by row; all are [rows, n] on every rank, gain is [n].
template <Floating T>
class AddAndNormalise {
 public:
  /// Collective. Throws Skip unless rows are whole packs and fit into a block's registers, and
  /// as flagged_elements() does. Other errors are OneShot's.
  AddAndNormalise(Rank& rank, std::int64_t rows, std::int64_t n, float epsilon, int set_aside = 0)
      : rank_(rank),
        rows_(rows),
        n_(whole_rows(n)),
        epsilon_(epsilon),
        packs_(packs_of<Vector<T>>(flagged_elements<T>(rank, rows * n))),
        blocks_(blocks_for_work(rank, rows * kThreads, set_aside)),
        received_(rank, static_cast<std::size_t>(3 * rank.size() * packs_)),
        calls_(rank, 0, 3) {
    fill(rank, received_, {{kEmpty, kEmpty, kEmpty, kEmpty}});
    load_on_all_ranks(rank, add_and_normalise<T>);
  }

  /// See OneShot. All pointers are aligned to 16 bytes.
  void run(const T* x, const T* gain, T* residual, T* out, cudaStream_t stream) {
    const TimelineScope name("all-reduce, residual and norm");
    add_and_normalise<T><<<blocks_, kNormThreads, 0, stream>>>(on_ranks(rank_, received_), calls_.number(), x,
                                                               gain, residual, out, rows_, n_, epsilon_);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  static std::int64_t whole_rows(std::int64_t n) {
    constexpr std::int64_t kMost = kNormThreads * kPacksOfAThread * Vector<T>::kWidth;
    if (n % Vector<T>::kWidth == 0 && n <= kMost) return n;
    throw Skip("rows of " + std::to_string(n) + " elements are no whole packs of 16 bytes, or more than " +
               std::to_string(kMost));
  }

  Rank& rank_;
  std::int64_t rows_, n_;
  float epsilon_;
  std::int64_t packs_;
  int blocks_;
  PeerBuffer<Words> received_;  // [call mod 3][rank][pack]
  CallCounter calls_;
};

}  // namespace overlap::small_all_reduce
