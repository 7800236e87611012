// A part of an algorithm, such as its communication, is timed on the stream of the call: that stream must
// wait for all of the part's work, also on other streams and other ranks.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <functional>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Takes long, and says at its end that it has come there.
__global__ inline void come_late(volatile int* came, int* sink, int rounds) {
  int sum = *sink;
  for (int i = 0; i < rounds; ++i) sum = sum * 3 + i;
  *sink = sum;
  *came = 1;
}

/// Puts work that takes long into a stream, and tells whether it is over.
class LateWork {
 public:
  explicit LateWork(Rank& rank) : came_(1), sink_(rank.device(), 1) {
    CUDA_CHECK(cudaMemset(sink_.data(), 0, sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
    came_[0] = 0;
    start(rank.stream(), 1);  // loads the kernel
    rank.synchronize(rank.stream());
    came_[0] = 0;
  }
  void start(cudaStream_t stream, int rounds = 1 << 17) {
    come_late<<<1, 1, 0, stream>>>(came_.data(), sink_.data(), rounds);
    CUDA_CHECK(cudaGetLastError());
  }
  /// True once it is over; any host may ask.
  bool is_over() const { return const_cast<const volatile int&>(came_[0]) != 0; }
  void reset() { came_[0] = 0; }

 private:
  PinnedBuffer<int> came_;
  DeviceBuffer<int> sink_;
};

/// One call of the part on a stream.
using Part = std::function<void(cudaStream_t stream)>;

/// One rank after the other is late: `part`, in which all ranks exchange data, ends on no rank before the
/// late rank calls it, and leaves no stream of the rank busy.
inline void expect_all_wait_for_a_late_rank(Rank& rank, const Part& part) {
  LateWork late(rank);
  const std::vector<LateWork*> of_all = rank.exchange(&late);
  for (int who = 0; who < rank.size(); ++who) {
    rank.barrier();
    if (rank.id() == who) late.start(rank.stream());
    part(rank.stream());
    rank.synchronize(rank.stream());
    EXPECT_TRUE(of_all[static_cast<std::size_t>(who)]->is_over())
        << "rank " << rank.id() << " of " << rank.size() << " did not wait for rank " << who;
    for (const cudaStream_t other : {rank.second_stream(), rank.transfer_stream(0), rank.transfer_stream(1)})
      EXPECT_EQ(cudaStreamQuery(other), cudaSuccess) << "rank " << rank.id() << " of " << rank.size();
    rank.barrier();
    late.reset();
  }
}

/// The rank's stream `other` is busy: `part`, which uses it, ends after that work and leaves the stream idle.
inline void expect_is_waited_for(Rank& rank, cudaStream_t other, const Part& part) {
  LateWork late(rank);
  late.start(other);
  part(rank.stream());
  rank.synchronize(rank.stream());
  EXPECT_TRUE(late.is_over()) << "rank " << rank.id() << " of " << rank.size();
  EXPECT_EQ(cudaStreamQuery(other), cudaSuccess) << "rank " << rank.id() << " of " << rank.size();
  rank.barrier();
}

}  // namespace overlap
