// Shared by the tests of ranks: a ring of ranks that wait for each other, and the error of a run.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"

namespace overlap {

template <class T>
__global__ void pass_on(const T* own, T* next, T add) {
  *next = *own + add;
}

/// A number circulates around the ring `rounds` times; each rank adds 1.
inline void run_ring(int size, int epochs) {
  std::vector<int> last(size);
  run_ranks(size, [&](Rank& rank) {
    PeerBuffer<int> number(rank, 1);
    Signals arrived(rank, 1);
    const cudaStream_t stream = rank.stream();
    CUDA_CHECK(cudaMemsetAsync(number.local(), 0, sizeof(int), stream));
    pass_on<<<1, 1, 0, stream>>>(number.local(), number.local(), 0);  // loaded before any wait
    rank.synchronize(stream);
    rank.barrier();
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      arrived.begin_call();
      // Rank 0 starts each round, the others wait for it; rank 0 waits for the round's end.
      if (rank.id() != 0) arrived.await(0, stream);
      pass_on<<<1, 1, 0, stream>>>(number.local(), number.on(rank.next()), 1);
      CUDA_CHECK(cudaGetLastError());
      arrived.raise(rank.next(), 0, stream);
      if (rank.id() == 0) arrived.await(0, stream);
      if (epoch % 100 == 0) rank.synchronize(stream);
    }
    rank.synchronize(stream);
    rank.barrier();
    CUDA_CHECK(cudaMemcpy(&last[rank.id()], number.local(), sizeof(int), cudaMemcpyDeviceToHost));
  });
  EXPECT_EQ(last[0], size * epochs);
  for (int id = 1; id < size; ++id) EXPECT_EQ(last[id], size * (epochs - 1) + id) << "rank " << id;
}

/// The error that `program` throws.
template <class Error>
std::string failure(int size, const std::function<void(Rank&)>& program) {
  try {
    run_ranks(size, program);
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& other) {
    return std::string("another type: ") + other.what();
  }
  return "nothing";
}

}  // namespace overlap
