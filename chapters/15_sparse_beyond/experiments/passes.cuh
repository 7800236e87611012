// Experiment of chapter 15: the compute of a training step beside the exchange of its sparse gradient.
// Simulated by GEMMs: a forward pass, and a backward pass that writes the gradient part by part.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::sparse_beyond {

/// values[entry] = gradient[entry], for all entries of the table's rows from rows.begin to rows.end. A block
/// takes an entry after the other.
template <SparseIndex Index, Floating T>
__global__ void write_entries(const Index* indices, std::int64_t entries, Range rows, const T* gradient,
                              std::int64_t features, T* values) {
  for (std::int64_t entry = blockIdx.x; entry < entries; entry += gridDim.x) {
    if (indices[entry] < rows.begin || indices[entry] >= rows.end) continue;
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      values[entry * features + feature] = gradient[entry * features + feature];
  }
}

/// The passes of a model of several layers, each with a part of the table. A layer is a product of as many
/// tokens as a rank has rows at most by a square matrix of F columns: one in the forward pass; in the
/// backward pass two, for the gradients of its input and of its matrix. They are on zeros, and their results
/// mean nothing.
template <SparseIndex Index, Floating T>
class Passes {
 public:
  /// Runs each product once. Collective.
  Passes(Rank& rank, SparseShape shape)
      : rank_(rank),
        features_(shape.features),
        layer_{shape.entries, shape.features, shape.features},
        matrix_gradient_{shape.features, shape.features, shape.entries},
        tokens_(rank.device(), shape.elements(shape.entries)),
        out_(rank.device(), shape.elements(shape.entries)),
        matrix_(rank.device(), shape.elements(shape.features)),
        matrix_out_(rank.device(), shape.elements(shape.features)) {
    for (const DeviceBuffer<T>* zeros : {&tokens_, &out_, &matrix_, &matrix_out_}) {
      if (zeros->size() == 0) continue;
      CUDA_CHECK(cudaMemsetAsync(zeros->data(), 0, zeros->bytes(), rank.stream()));
    }
    forward(1, rank.stream());
    multiply_backward(rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
  }

  /// Enqueues the forward pass of so many layers.
  void forward(int layers, cudaStream_t stream) {
    const TimelineScope name("forward");
    for (int layer = 0; layer < layers; ++layer)
      matmul_row_major(rank_.cublas(), stream, layer_, tokens_.data(), matrix_.data(), out_.data());
  }

  /// Enqueues a layer's backward pass, behind which `values` has all entries of these rows.
  void backward(int layer, Range rows, const Index* indices, const T* gradient, std::int64_t entries,
                T* values, cudaStream_t stream) {
    const TimelineScope name("backward ", layer);
    multiply_backward(stream);
    if (entries == 0) return;
    write_entries<<<blocks_for_rows(entries), kBlockThreads, 0, stream>>>(indices, entries, rows, gradient,
                                                                          features_, values);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  void multiply_backward(cudaStream_t stream) {
    matmul_row_major(rank_.cublas(), stream, layer_, out_.data(), matrix_.data(), tokens_.data(),
                     {.b = Layout::kTransposed});
    matmul_row_major(rank_.cublas(), stream, matrix_gradient_, tokens_.data(), out_.data(),
                     matrix_out_.data(), {.a = Layout::kTransposed});
  }

  Rank& rank_;
  std::int64_t features_;
  MatmulShape layer_, matrix_gradient_;
  DeviceBuffer<T> tokens_, out_;         // [tokens, F]
  DeviceBuffer<T> matrix_, matrix_out_;  // [F, F]
};

}  // namespace overlap::sparse_beyond
