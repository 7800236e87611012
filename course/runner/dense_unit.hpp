// Adapts a dense algorithm, in two types, to Submission.
#pragma once

#include <stdexcept>

#include "submission.hpp"

namespace overlap::teaching {

/// An Algorithm(rank, whole) whose run(a, b, c, stream) multiplies elements of T.
template <typename Algorithm, typename T>
class DenseSubmission final : public Submission {
 public:
  DenseSubmission(Rank& rank, MatmulShape whole) : algorithm_(rank, whole) {}
  void run(const Buffers& buffers) override {
    algorithm_.run(static_cast<const T*>(buffers.a), static_cast<const T*>(buffers.b),
                   static_cast<T*>(buffers.c), buffers.stream);
  }

 private:
  Algorithm algorithm_;
};

/// The algorithm in the requested type. Throws std::invalid_argument for another one.
template <typename InF16, typename InF32>
Submission* make_dense(Rank& rank, const MatmulShape& sizes, ElementType type) {
  if (type == ElementType::kF16) return new DenseSubmission<InF16, __half>(rank, sizes);
  if constexpr (detail::kAllTypes) {
    if (type == ElementType::kF32) return new DenseSubmission<InF32, float>(rank, sizes);
  }
  throw std::invalid_argument("make_dense: f16 or f32");
}

}  // namespace overlap::teaching
