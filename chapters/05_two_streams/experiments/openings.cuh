// Chapter 05: five openings of the pull: the copy that publishes the shard, and the barrier, before, beside
// or after the first GEMM, which needs neither.
#pragma once

#include <cuda_runtime.h>

#include "05_two_streams/pull_two_streams.cuh"

namespace overlap::two_streams {

/// The first is the lesson's and PyTorch's choice; the others are the four scenarios in a comment of
/// PyTorch's source, which leaves them to the GPU's scheduler. Here events force them.
enum class Opening {
  kBefore,        ///< copy and barrier, then the first GEMM
  kBeside,        ///< "ideal scenario 0": both beside the first GEMM
  kCopyFirst,     ///< "ideal scenario 1": the copy before the first GEMM, the barrier beside it
  kAfter,         ///< "suboptimal scenario 0": both after the first GEMM
  kBarrierAfter,  ///< the other "suboptimal scenario 0": the copy beside the first GEMM, the barrier after it
};

/// PullTwoStreams with any of the openings.
template <Floating T>
class PullWithOpening {
 public:
  /// Collective. As PullTwoStreams.
  PullWithOpening(Rank& rank, MatmulShape whole, Opening opening)
      : rank_(rank), pull_(rank, whole), opening_(opening) {}

  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (rank_.size() == 1) return pull_.run(a, b, c, stream);
    pull_.signals_.begin_call();
    open(a, b, c, stream);
    pull_.pull_and_multiply(b, c, stream);
    pull_.close(stream);
  }

 private:
  static constexpr int kPublished = PullTwoStreams<T>::kPublished;

  // With each opening, pulls on the second stream are ordered after the barrier and after earlier work in
  // `stream`. The caller's stream pulls only after the second stream has, and so after the barrier, too.
  void open(const T* a, const T* b, T* c, cudaStream_t stream) {
    const cudaStream_t second = rank_.second_stream();
    switch (opening_) {
      case Opening::kBefore:
        pull_.open(a, b, c, stream);
        break;
      case Opening::kBeside:
        pull_.start_after(second, stream);
        pull_.publish(a, second);
        pull_.meet(kPublished, second);
        pull_.multiply(0, a, b, c, stream);
        break;
      case Opening::kCopyFirst:
        pull_.start_after(second, stream);
        pull_.publish(a, second);
        pull_.start_after(stream, second);
        pull_.multiply(0, a, b, c, stream);
        pull_.meet(kPublished, second);
        break;
      case Opening::kAfter:
        pull_.multiply(0, a, b, c, stream);
        pull_.start_after(second, stream);
        pull_.publish(a, second);
        pull_.meet(kPublished, second);
        break;
      case Opening::kBarrierAfter:
        pull_.start_after(second, stream);
        pull_.publish(a, second);
        pull_.multiply(0, a, b, c, stream);
        pull_.start_after(second, stream);
        pull_.meet(kPublished, second);
        break;
    }
  }

  Rank& rank_;
  PullTwoStreams<T> pull_;
  Opening opening_;
};

}  // namespace overlap::two_streams
