// The whole interface between a student's unit and the judge's runner.
//
// A submission is a header that replaces a chapter's. It is compiled as a unit of its own: first this and the
// repository's headers, then the student's, then one line that defines overlap_submission(). Only this symbol
// of the unit stays visible, so that the unit cannot replace any other.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "overlap/gpu/element.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap::teaching {

/// A rank's arguments of one call, in its GPU's memory.
struct Buffers {
  const void* a;        ///< first input: a shard of A, or row numbers
  const void* b;        ///< second input: a shard of B, or the rows' values
  void* c;              ///< where the result belongs
  std::int64_t count;   ///< entries of a sparse gradient; 0 for products
  cudaStream_t stream;  ///< that the call is made on
};

/// A rank's algorithm, as the runner calls it.
class Submission {
 public:
  virtual ~Submission() = default;
  /// Enqueues one call; its work has ended when the stream has.
  virtual void run(const Buffers& buffers) = 0;
};

}  // namespace overlap::teaching

/// Makes the algorithm of one rank; collective. `sizes`: m, n and k of a GEMM, or rows, features and entries
/// of a sparse gradient. The caller deletes it.
extern "C" overlap::teaching::Submission* overlap_submission(overlap::Rank& rank,
                                                             const overlap::MatmulShape& sizes,
                                                             overlap::ElementType type);
