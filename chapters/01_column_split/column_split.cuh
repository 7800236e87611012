// Chapter 01: C = A B over several GPUs. Each GPU gets all of A and a share of B's columns, and computes the
// same columns of C. No GPU needs data of another one, so all GPUs work at the same time.
//
// Source: "Tensor Parallelism with CUDA - Multi-GPU Matrix Multiplication" (D. Kennetz); the page beside this
// file explains the differences.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::column_split {

/// C[m, n] = A[m, k] B[k, n], row-major, one CUDA thread for each element of C. Threads along x take
/// neighbouring columns: they read neighbouring elements of B, which the hardware fetches together.
__global__ void multiply(const int* a, const int* b, int* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  // [task kernel: which element of C is this thread's, if it has one, and what is its value?]
  const std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  // The grid consists of whole blocks; at the lower and right edge some threads have no element.
  if (row < m && column < n) {
    int sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      sum += a[row * k + i] * b[i * n + column];
    }
    c[row * n + column] = sum;
  }
  // [/task]
}

/// The GEMM of share `gpu` of `gpus` of C[m, n] = A[m, k] B[k, n]: a range of columns of B and C.
inline MatmulShape share_of_columns(MatmulShape shape, int gpus, int gpu) {
  return {shape.m, balanced_share(shape.n, gpus, gpu).size(), shape.k};
}

inline constexpr int kCopies = 3;  ///< in a run, on each GPU that has columns: of A, of B and of C

/// What a GPU with this share moves and launches in one run. The page's cost card and the tests both come
/// from here.
inline Cost cost(MatmulShape share) {
  if (share.n == 0) return {};
  const auto element = static_cast<std::int64_t>(sizeof(int));
  return {.bytes_to_host = share.m * share.n * element,
          .bytes_from_host = (share.m * share.k + share.k * share.n) * element,
          .launches = 1};
}

/// C[m, n] = A[m, k] B[k, n] in int on GPUs 0 ... gpus - 1. Everything is allocated here, once; run() only
/// enqueues.
class ColumnSplitMatmul {
 public:
  static constexpr int kTile = 16;  ///< a block has kTile x kTile threads

  /// Throws UsageError for a shape without elements, with more rows than a grid can have or with longer rows
  /// than a 2-D copy takes; CudaError if a GPU does not exist or has too little memory.
  ColumnSplitMatmul(int gpus, MatmulShape shape) : shape_(shape) {
    checked_elements(shape.m, shape.k, sizeof(int));
    checked_elements(shape.k, shape.n, sizeof(int));
    checked_elements(shape.m, shape.n, sizeof(int));
    if (shape.m > kMaxRows)
      throw UsageError("--m: a grid has at most 65535 blocks along y, so at most 1048560 rows");
    if (shape.n > kMaxColumns)
      throw UsageError("--n: a 2-D copy takes rows of less than 2^31 bytes, so at most 536870911 columns");
    for (int device = 0; device < gpus; ++device) {
      // [task share_of_columns: which columns belong to this GPU, also if the GPUs do not divide n?]
      // [blank] const Range columns{};
      const Range columns = balanced_share(shape.n, gpus, device);
      // [/task]
      gpus_.emplace_back(device, shape, columns);
    }
  }

  /// Enqueues the whole GEMM on all GPUs and returns at once. `a`, `b` and `c` are row-major matrices in
  /// pinned host memory (from ordinary memory, copies would make the host wait). They belong to the GPUs
  /// until synchronize() returns.
  void run(const int* a, const int* b, int* c) {
    for (Gpu& gpu : gpus_) {
      if (gpu.columns.empty()) continue;  // more GPUs than columns
      CUDA_CHECK(cudaSetDevice(gpu.device));
      copy_in(gpu, a, b);
      launch(gpu);
      copy_out(gpu, c);
    }
  }

  /// Waits until all GPUs have finished what run() has enqueued: only then the host may read C.
  void synchronize() {
    // [task wait: what has to be over on every GPU before the host may read C?]
    for (Gpu& gpu : gpus_) {
      CUDA_CHECK(cudaStreamSynchronize(gpu.stream));
    }
    // [/task]
  }

  /// Milliseconds that the kernel of the last run took on that GPU, without the copies. Call it after
  /// synchronize().
  float kernel_ms(int device) const {
    const Gpu& gpu = gpus_[device];
    if (gpu.columns.empty()) return 0.0f;
    float milliseconds = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, gpu.start, gpu.stop));
    return milliseconds;
  }

  /// The number of GPUs, those without columns included.
  int gpus() const { return static_cast<int>(gpus_.size()); }
  /// The columns of B and C that belong to a GPU.
  Range columns(int device) const { return gpus_[device].columns; }

 private:
  static constexpr std::int64_t kMaxRows = std::int64_t{65535} * kTile;
  static constexpr std::int64_t kMaxColumns = 0x7fffffff / sizeof(int);  // cudaDeviceProp::memPitch

  /// What one GPU holds: all of A, its columns of B and C, a stream for its work, two events around its
  /// kernel.
  struct Gpu {
    Gpu(int device, MatmulShape shape, Range columns)
        : device(device),
          columns(columns),
          stream(device),
          start(device),
          stop(device),
          a(device, columns.empty() ? 0 : shape.m * shape.k),
          b(device, shape.k * columns.size()),
          c(device, shape.m * columns.size()) {}

    int device;
    Range columns;
    Stream stream;
    Event start, stop;
    DeviceBuffer<int> a, b, c;
  };

  // ---- Step 1: A, and this GPU's columns of B, to the GPU -----------------------------------------------
  void copy_in(Gpu& gpu, const int* a, const int* b) {
    const TimelineScope name("copy A and B in");  // in the picture that --timeline makes
    // [task copy_in: where do the elements of a GPU's columns of B lie on the host, and where on the GPU?]
    CUDA_CHECK(cudaMemcpyAsync(gpu.a.data(), a, gpu.a.bytes(), cudaMemcpyHostToDevice, gpu.stream));
    // On the host a row of B has n elements, on the GPU only its own columns: a copy of k short rows with two
    // pitches.
    const std::size_t host_pitch = shape_.n * sizeof(int);
    const std::size_t width = gpu.columns.size() * sizeof(int);
    CUDA_CHECK(cudaMemcpy2DAsync(gpu.b.data(), width, b + gpu.columns.begin, host_pitch, width, shape_.k,
                                 cudaMemcpyHostToDevice, gpu.stream));
    // [/task]
  }

  // ---- Step 2: the GEMM, between two events of the same stream ------------------------------------------
  void launch(Gpu& gpu) {
    // [task launch: how many blocks does it take, in which stream, and what do the events stand around?]
    const dim3 block(kTile, kTile);
    const dim3 grid((gpu.columns.size() + kTile - 1) / kTile, (shape_.m + kTile - 1) / kTile);
    CUDA_CHECK(cudaEventRecord(gpu.start, gpu.stream));
    multiply<<<grid, block, 0, gpu.stream>>>(gpu.a.data(), gpu.b.data(), gpu.c.data(), shape_.m,
                                             gpu.columns.size(), shape_.k);
    CUDA_CHECK(cudaGetLastError());  // <<<...>>> returns no error code
    CUDA_CHECK(cudaEventRecord(gpu.stop, gpu.stream));
    // [/task]
  }

  // ---- Step 3: this GPU's columns of C back into their place in the whole matrix ------------------------
  void copy_out(Gpu& gpu, int* c) {
    const TimelineScope name("copy C out");
    // [task copy_out: which pitch does C have on the host, and which on the GPU?]
    const std::size_t host_pitch = shape_.n * sizeof(int);
    const std::size_t width = gpu.columns.size() * sizeof(int);
    CUDA_CHECK(cudaMemcpy2DAsync(c + gpu.columns.begin, host_pitch, gpu.c.data(), width, width, shape_.m,
                                 cudaMemcpyDeviceToHost, gpu.stream));
    // [/task]
  }

  MatmulShape shape_;
  std::vector<Gpu> gpus_;
};

}  // namespace overlap::column_split
