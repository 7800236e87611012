// A program whose rank 1 fails, or waits for ever, while the others wait; failing_test.py tests how it ends.
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <cuda/atomic>
#include <string>
#include <thread>

#include "overlap/bench/gate.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/program/chapter.hpp"

namespace overlap {
namespace {

template <class T>
__global__ void nothing(T*) {}

__global__ void spin(int* word, unsigned* stop) {
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> flag(*stop);
  while (flag.load(cuda::memory_order_acquire) == 0) __nanosleep(1000);
  *word = 1;
}

/// Fails after the other ranks have begun to wait.
[[noreturn]] void fail(Rank& rank) {
  for (int i = 0; i < 100; ++i) {
    (void)cudaStreamQuery(rank.stream());  // yields to the other ranks where they are fibers
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  throw std::runtime_error("planted");
}

/// Pulls from the last rank's memory.
void pull(const PeerBuffer<int>& to, const PeerBuffer<int>& from, Rank& rank) {
  CUDA_CHECK(
      cudaMemcpyAsync(to.local(), from.on(rank.size() - 1), sizeof(int), cudaMemcpyDefault, rank.stream()));
}

void run(Rank& rank, const std::string& where) {
  PeerBuffer<int> data(rank, 1);
  Signals arrived(rank, 1);
  Gate gate(rank);
  const cudaStream_t stream = rank.stream();
  nothing<<<1, 1, 0, stream>>>(data.local());
  rank.synchronize(stream);
  arrived.begin_call();
  rank.barrier();
  const bool fails = rank.id() == 1;
  if (where == "stream") {
    if (fails) fail(rank);
    arrived.await(0, stream);
    nothing<<<1, 1, 0, stream>>>(data.local());
    rank.synchronize(stream);
  } else if (where == "barrier") {
    if (fails) fail(rank);
    rank.barrier();
  } else if (where == "constructor") {
    if (fails) fail(rank);
    const Signals more(rank, 3);
  } else if (where == "destructor") {
    arrived.await(0, stream);
    if (fails) fail(rank);
  } else if (where == "gate") {
    gate.close(stream);
    if (fails) throw std::runtime_error("planted");
    gate.open();
    rank.synchronize(stream);
  } else if (where == "collective") {
    PeerBuffer<int> numbers(rank, 1000);
    const auto sum = [&] {
      NCCL_CHECK(ncclAllReduce(numbers.local(), numbers.local(), numbers.size(), ncclInt, ncclSum,
                               rank.nccl(), stream));
    };
    sum();
    rank.synchronize(stream);
    if (fails) fail(rank);
    sum();
    rank.synchronize(stream);
  } else if (where == "kernel") {
    if (fails) fail(rank);
    spin<<<1, 1, 0, stream>>>(data.local(), rank.abort_flag());
    rank.synchronize(stream);
  } else if (where == "fault") {  // a kernel with an illegal access: the GPU is unusable afterwards
    if (fails) {
      nothing<<<1, 1, 0, stream>>>(data.local());
      spin<<<1, 1, 0, stream>>>(static_cast<int*>(nullptr), reinterpret_cast<unsigned*>(8));
    } else {
      arrived.await(0, stream);
    }
    rank.synchronize(stream);
  } else if (where == "hang") {  // of a host; real GPUs only
    if (fails) throw std::runtime_error("planted");
    arrived.await(0, stream);
    std::this_thread::sleep_for(std::chrono::hours(1));
  } else if (where == "pulls") {
    // Rank 0 pulls too early: its pull waits for a signal that rank 1 raises after a pull from the same GPU.
    PeerBuffer<int> from(rank, 1);
    if (rank.id() == 0) {
      arrived.await(0, stream);
      pull(data, from, rank);
    }
    rank.barrier();
    if (rank.id() == 1) {
      pull(data, from, rank);
      arrived.raise(0, 0, stream);
    }
    rank.synchronize(stream);
  } else if (where == "nobody") {  // no rank fails or raises the signal
    arrived.await(0, stream);
    rank.synchronize(stream);
  } else if (where == "ended") {  // a rank returns while the others wait for it
    if (!fails) rank.barrier();
  } else {
    throw UsageError("unknown place '" + where + "'");
  }
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  overlap::ChapterInfo info;
  info.name = "failing";
  info.on_virtual_gpus = info.on_real_gpus = {.shape = {1, 1, 1}, .gpus = 16};
  const char* where = std::getenv("FAILING_WHERE");
  return overlap::chapter_main(argc, argv, info, [&](const overlap::Options& options) {
    overlap::run_ranks(options.gpus,
                       [&](overlap::Rank& rank) { overlap::run(rank, where != nullptr ? where : ""); });
  });
}
