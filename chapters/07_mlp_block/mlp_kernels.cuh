// Chapter 07, between the GEMMs: normalisation, activation and residual. All three only read and write
// memory: 16 bytes at a time where rows and pointers are aligned to 16, element by element elsewhere. They
// compute in f32 and round each result once.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "06_reduce_scatter/vec16.cuh"
#include "overlap/data/mlp_layer.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::mlp_block {

using reduce_scatter::kVec16Width;
using reduce_scatter::Vec16;
using reduce_scatter::vectors_at;

inline constexpr int kMlpThreads = 256;  ///< in a block of these kernels, at most

/// The sum of all threads' values, the same bits on every thread and in every run: first in each warp, by
/// exchange of registers, then over the warps. Every thread of a block of whole warps calls it, once.
__device__ inline float block_sum(float value) {
  __shared__ float sums[kMlpThreads / kWarp];
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / kWarp; ++warp) sum += sums[warp];
  return sum;
}

/// RMSNorm of rows of `h` elements, one block for each: out = gain * x / sqrt(mean of x^2 + epsilon). The
/// first `vectors` vectors of a row are read as vectors, the rest one by one. Uses a root and two divisions
/// instead of rsqrtf(), whose last bit may be wrong: so a mean that is a power of four gives an exact result.
template <Floating T>
__global__ void normalise_rows(const T* __restrict__ x, const T* __restrict__ gain, T* __restrict__ out,
                               std::int64_t h, std::int64_t vectors, float epsilon) {
  constexpr int kWidth = kVec16Width<T>;
  using Elements = Vec16<T, kWidth>;
  const std::int64_t row = std::int64_t{blockIdx.x} * h;
  const auto* x_vectors = reinterpret_cast<const Elements*>(x + row);
  const auto* gain_vectors = reinterpret_cast<const Elements*>(gain);
  auto* out_vectors = reinterpret_cast<Elements*>(out + row);

  // [task normalise: what is summed over the row, and what is each element multiplied by?]
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const Elements elements = x_vectors[i];
    for (int j = 0; j < kWidth; ++j) {
      const float element = static_cast<float>(elements.values[j]);
      squares += element * element;
    }
  }
  for (std::int64_t i = vectors * kWidth + threadIdx.x; i < h; i += blockDim.x) {
    const float element = static_cast<float>(x[row + i]);
    squares += element * element;
  }
  const float scale = 1.0f / sqrtf(block_sum(squares) / static_cast<float>(h) + epsilon);
  // The second read of the row hits the cache.
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const Elements elements = x_vectors[i], gains = gain_vectors[i];
    Elements normed;
    for (int j = 0; j < kWidth; ++j) {
      normed.values[j] = static_cast<T>(static_cast<float>(gains.values[j]) *
                                        (static_cast<float>(elements.values[j]) * scale));
    }
    out_vectors[i] = normed;
  }
  for (std::int64_t i = vectors * kWidth + threadIdx.x; i < h; i += blockDim.x) {
    out[row + i] = static_cast<T>(static_cast<float>(gain[i]) * (static_cast<float>(x[row + i]) * scale));
  }
  // [/task]
}

/// The activation of one number. GELU's two forms, as written in mlp_layer.hpp, cancel where 1 + tanh and 1 +
/// erf are close to 0; these are the same functions without cancellation.
__device__ inline float activate(Activation activation, float v) {
  // [task activate: which function is it, without the loss of digits for negative v, and without hiding NaN?]
  // [blank] return v;
  if (activation == Activation::kRelu) return v < 0 ? 0 : v;  // fmaxf(v, 0) would make 0 of NaN
  if (activation == Activation::kGeluErf) return 0.5f * v * erfcf(-0.70710678f * v);  // 1 + erf(u) = erfc(-u)
  const float u = 0.79788456f * (v + 0.044715f * v * v * v);
  return v / (1 + expf(-2 * u));  // (1 + tanh(u)) / 2 = 1 / (1 + e^-2u)
  // [/task]
}

/// values = activation of values, one vector for each of the first `vectors` threads, then one element each.
template <Floating T>
__global__ void activate_elements(T* values, std::int64_t elements, std::int64_t vectors,
                                  Activation activation) {
  constexpr int kWidth = kVec16Width<T>;
  const std::int64_t i = std::int64_t{blockIdx.x} * kMlpThreads + threadIdx.x;
  if (i < vectors) {
    auto* place = reinterpret_cast<Vec16<T, kWidth>*>(values) + i;
    Vec16<T, kWidth> vector = *place;
    for (T& value : vector.values) value = static_cast<T>(activate(activation, static_cast<float>(value)));
    *place = vector;
  } else if (const std::int64_t j = vectors * kWidth + i - vectors; j < elements) {
    values[j] = static_cast<T>(activate(activation, static_cast<float>(values[j])));
  }
}

/// y = x + z, the same way. y may be z.
template <Floating T>
__global__ void add_elements(const T* x, const T* z, T* y, std::int64_t elements, std::int64_t vectors) {
  constexpr int kWidth = kVec16Width<T>;
  using Elements = Vec16<T, kWidth>;
  const std::int64_t i = std::int64_t{blockIdx.x} * kMlpThreads + threadIdx.x;
  if (i < vectors) {
    const Elements left = reinterpret_cast<const Elements*>(x)[i];
    Elements sum = reinterpret_cast<const Elements*>(z)[i];
    for (int j = 0; j < kWidth; ++j) {
      sum.values[j] = static_cast<T>(static_cast<float>(left.values[j]) + static_cast<float>(sum.values[j]));
    }
    reinterpret_cast<Elements*>(y)[i] = sum;
  } else if (const std::int64_t j = vectors * kWidth + i - vectors; j < elements) {
    y[j] = static_cast<T>(static_cast<float>(x[j]) + static_cast<float>(z[j]));
  }
}

namespace detail {

// Blocks with a thread for each vector, and for each element that is in none.
template <Floating T>
unsigned mlp_blocks(std::int64_t elements, std::int64_t vectors) {
  const std::int64_t threads = vectors + elements - vectors * kVec16Width<T>;
  return static_cast<unsigned>((threads + kMlpThreads - 1) / kMlpThreads);
}

// Whole warps, with a thread for each vector or element of a row, as far as a block has them.
inline unsigned threads_of_row(std::int64_t work) {
  const std::int64_t warps = (work + kWarp - 1) / kWarp;
  return static_cast<unsigned>(std::min<std::int64_t>(warps * kWarp, kMlpThreads));
}

}  // namespace detail

/// Enqueues out[rows, h] = RMSNorm of x[rows, h] with gain[h], all on the current device.
template <Floating T>
void normalise(const T* x, const T* gain, T* out, std::int64_t rows, std::int64_t h, float epsilon,
               cudaStream_t stream) {
  if (rows == 0) return;
  const TimelineScope name("normalise");
  // Each row begins at a multiple of 16 bytes, or no vectors.
  const bool aligned = h % kVec16Width<T> == 0 && vectors_at(x, h) > 0 && vectors_at(gain, h) > 0;
  const std::int64_t vectors = aligned ? vectors_at(out, h) : 0;
  normalise_rows<<<static_cast<unsigned>(rows), detail::threads_of_row(vectors > 0 ? vectors : h), 0,
                   stream>>>(x, gain, out, h, vectors, epsilon);
  CUDA_CHECK(cudaGetLastError());
}

/// Enqueues the activation of `elements` values in place.
template <Floating T>
void activate(T* values, std::int64_t elements, Activation activation, cudaStream_t stream) {
  if (elements == 0) return;
  const TimelineScope name("activate");
  const std::int64_t vectors = vectors_at(values, elements);
  activate_elements<<<detail::mlp_blocks<T>(elements, vectors), kMlpThreads, 0, stream>>>(
      values, elements, vectors, activation);
  CUDA_CHECK(cudaGetLastError());
}

/// Enqueues y = x + z, of `elements` values each. y may be z.
template <Floating T>
void add_residual(const T* x, const T* z, T* y, std::int64_t elements, cudaStream_t stream) {
  if (elements == 0) return;
  const TimelineScope name("add the residual");
  const bool aligned = vectors_at(x, elements) > 0 && vectors_at(z, elements) > 0;
  const std::int64_t vectors = aligned ? vectors_at(y, elements) : 0;
  add_elements<<<detail::mlp_blocks<T>(elements, vectors), kMlpThreads, 0, stream>>>(x, z, y, elements,
                                                                                     vectors);
  CUDA_CHECK(cudaGetLastError());
}

/// Runs each kernel once, on memory of its own: the first launch of a kernel loads it, which may wait for the
/// GPU, and so must precede every wait for a signal.
template <Floating T>
void warm_up_mlp_kernels(Rank& rank) {
  const DeviceBuffer<T> memory(rank.device(), 1);
  CUDA_CHECK(cudaMemsetAsync(memory.data(), 0, memory.bytes(), rank.stream()));
  normalise(memory.data(), memory.data(), memory.data(), 1, 1, 1.0f, rank.stream());
  activate(memory.data(), 1, Activation::kRelu, rank.stream());
  add_residual(memory.data(), memory.data(), memory.data(), 1, rank.stream());
  rank.synchronize(rank.stream());
}

}  // namespace overlap::mlp_block
