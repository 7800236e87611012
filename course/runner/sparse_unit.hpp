// Adapts a sparse all-reduce, in two types, to Submission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "submission.hpp"

namespace overlap::teaching {

/// An Algorithm(rank, shape) whose run(indices, values, count, stream) returns the rows of the sum. The
/// output buffer holds their number (8 bytes), then space for all row numbers, then the values. Rows beyond
/// the capacity are left out; the number still counts them.
template <typename Algorithm, typename T>
class SparseSubmission final : public Submission {
 public:
  SparseSubmission(Rank& rank, SparseShape shape)
      : shape_(shape), ranks_(rank.size()), algorithm_(rank, shape) {}
  void run(const Buffers& buffers) override {
    const auto rows = algorithm_.run(static_cast<const std::int32_t*>(buffers.a),
                                     static_cast<const T*>(buffers.b), buffers.count, buffers.stream);
    const std::int64_t room = room_of(shape_, ranks_);
    const auto kept = static_cast<std::size_t>(rows.count < 0 ? 0 : rows.count > room ? room : rows.count);
    auto* out = static_cast<std::byte*>(buffers.c);
    copy(out, &rows.count, sizeof rows.count, buffers.stream);
    copy(out + sizeof rows.count, rows.indices, kept * sizeof(std::int32_t), buffers.stream);
    copy(out + sizeof rows.count + static_cast<std::size_t>(room) * sizeof(std::int32_t), rows.values,
         kept * static_cast<std::size_t>(shape_.features) * sizeof(T), buffers.stream);
  }

  /// The most rows that a sum can have.
  static std::int64_t room_of(SparseShape shape, int ranks) {
    const std::int64_t most = shape.entries * ranks;
    return most < shape.rows ? most : shape.rows;
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }

  SparseShape shape_;
  int ranks_;
  Algorithm algorithm_;
};

/// The algorithm in the requested type. Throws std::invalid_argument for another one.
template <typename InF16, typename InF32>
Submission* make_sparse(Rank& rank, const MatmulShape& sizes, ElementType type) {
  const SparseShape shape{sizes.m, sizes.n, sizes.k};
  if (type == ElementType::kF16) return new SparseSubmission<InF16, __half>(rank, shape);
  if (type == ElementType::kF32) return new SparseSubmission<InF32, float>(rank, shape);
  throw std::invalid_argument("make_sparse: f16 or f32");
}

}  // namespace overlap::teaching
