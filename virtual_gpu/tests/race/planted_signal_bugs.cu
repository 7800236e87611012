// Programs of two ranks, each with one missing order between their GPUs or hosts, and the same programs
// without the bug. Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>

#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::PeerBuffer;
using overlap::Rank;
using overlap::Signals;
using overlap::Stream;
using planted::add;
using planted::fill;
using planted::kBytes;
using planted::kCount;

/// Shared by the cases: rank 0 copies its data to the slot of rank 1, which adds the slot to its own data.
struct Pair {
  explicit Pair(Rank& rank)
      : rank(rank), own(rank, kCount), slot(rank, kCount), signals(rank, 2), stream(rank.device()) {
    fill<<<1, kCount, 0, stream>>>(own.local(), rank.id());
    fill<<<1, kCount, 0, stream>>>(slot.local(), 0);
    rank.synchronize(stream);
    rank.barrier();
    signals.begin_call();
  }
  void finish() { rank.synchronize(stream); }

  Rank& rank;
  PeerBuffer<int> own, slot;
  const int* from = own.local();
  int* to = slot.on(1);
  Signals signals;  // 0: the slot is full; 1: it may be refilled
  Stream stream;
};

// ---- signal_not_awaited: rank 1 reads the slot without waiting for the signal ----------------------------
void signal_not_awaited(Rank& rank, bool fixed) {
  Pair pair(rank);
  if (rank.id() == 0) {
    cudaMemcpyAsync(pair.to, pair.from, kBytes, cudaMemcpyDefault, pair.stream);  // @signal_not_awaited
    pair.signals.raise(1, 0, pair.stream);
  } else {
    if (fixed) pair.signals.await(0, pair.stream);
    add<<<1, kCount, 0, pair.stream>>>(pair.to, pair.own.local());  // @signal_not_awaited
  }
  pair.finish();
}

// ---- raised_on_another_stream: the signal overtakes the copy ---------------------------------------------
void raised_on_another_stream(Rank& rank, bool fixed) {
  Pair pair(rank);
  const Stream other(rank.device());
  if (rank.id() == 0) {
    cudaMemcpyAsync(pair.to, pair.from, kBytes, cudaMemcpyDefault, pair.stream);  // @raised_on_another_stream
    pair.signals.raise(1, 0, fixed ? pair.stream.get() : other.get());
  } else {
    pair.signals.await(0, pair.stream);
    add<<<1, kCount, 0, pair.stream>>>(pair.to, pair.own.local());  // @raised_on_another_stream
  }
  pair.finish();
  rank.synchronize(other);
}

// ---- slot_filled_too_early: the second call refills the slot before rank 1 has read it -------------------
void slot_filled_too_early(Rank& rank, bool fixed) {
  Pair pair(rank);
  for (int call = 0; call < 2; ++call) {
    if (call > 0) pair.signals.begin_call();
    if (rank.id() == 0) {
      if (call > 0 && fixed) {
        CU_CHECK(cuStreamWaitValue32(pair.stream, reinterpret_cast<CUdeviceptr>(pair.signals.word(0, 1)), 1,
                                     CU_STREAM_WAIT_VALUE_GEQ));
      }
      cudaMemcpyAsync(pair.to, pair.from, kBytes, cudaMemcpyDefault, pair.stream);  // @slot_filled_too_early
      pair.signals.raise(1, 0, pair.stream);
    } else {
      pair.signals.await(0, pair.stream);
      add<<<1, kCount, 0, pair.stream>>>(pair.to, pair.own.local());  // @slot_filled_too_early
      pair.signals.raise(0, 1, pair.stream);
    }
  }
  pair.finish();
}

// ---- stale_epoch: the second call waits for the epoch of the first call ---------------------
void stale_epoch(Rank& rank, bool fixed) {
  Pair pair(rank);
  for (int call = 1; call <= 2; ++call) {
    if (call > 1) pair.signals.begin_call();
    if (rank.id() == 0) {
      cudaMemcpyAsync(pair.to, pair.from, kBytes, cudaMemcpyDefault, pair.stream);  // @stale_epoch
      pair.signals.raise(1, 0, pair.stream);
      pair.signals.await(1, pair.stream);
    } else {
      const unsigned epoch = fixed ? call : 1;
      CU_CHECK(cuStreamWaitValue32(pair.stream, reinterpret_cast<CUdeviceptr>(pair.signals.word(1, 0)), epoch,
                                   CU_STREAM_WAIT_VALUE_GEQ));
      add<<<1, kCount, 0, pair.stream>>>(pair.to, pair.own.local());  // @stale_epoch
      pair.signals.raise(0, 1, pair.stream);
    }
  }
  pair.finish();
}

// ---- scope: a kernel loads at device scope a word that another GPU's stream writes ----------------------
template <cuda::thread_scope Scope, typename T>
__global__ void await_word(T* word, T value) {
  while (cuda::atomic_ref<T, Scope>(*word).load(cuda::memory_order_acquire) < value) {  // @scope @scope
  }
}

void scope(Rank& rank, bool fixed) {
  Pair pair(rank);
  if (rank.id() == 0) {
    cudaMemcpyAsync(pair.to, pair.from, kBytes, cudaMemcpyDefault, pair.stream);
    pair.signals.raise(1, 0, pair.stream);
  } else {
    const auto await = fixed ? await_word<cuda::thread_scope_system, unsigned>
                             : await_word<cuda::thread_scope_device, unsigned>;
    await<<<1, 1, 0, pair.stream>>>(pair.signals.word(1, 0), pair.signals.epoch());
    add<<<1, kCount, 0, pair.stream>>>(pair.to, pair.own.local());
  }
  pair.finish();
}

// ---- host_barrier_only: the hosts meet at a barrier, their GPUs do not -----------------------
void host_barrier_only(Rank& rank, bool fixed) {
  Pair pair(rank);
  if (rank.id() == 0) {
    cudaMemcpyAsync(pair.to, pair.from, kBytes, cudaMemcpyDefault, pair.stream);  // @host_barrier_only
    if (fixed) rank.synchronize(pair.stream);
  }
  rank.barrier();
  if (rank.id() == 1) {
    add<<<1, kCount, 0, pair.stream>>>(pair.to, pair.own.local());  // @host_barrier_only
  }
  pair.finish();
}

// ---- hosts_without_a_barrier: a rank's host reads what another rank's host writes ------------------------
int shared_value = 0;
void hosts_without_a_barrier(Rank& rank, bool fixed) {
  Pair pair(rank);
  if (rank.id() == 0) shared_value = 1;  // @hosts_without_a_barrier
  if (fixed) rank.barrier();
  if (rank.id() == 1 && shared_value == 2) std::printf("2\n");  // @hosts_without_a_barrier
  pair.finish();
}

planted::Case on_two_ranks(void (*run)(Rank&, bool)) {
  return [run](bool fixed) { overlap::run_ranks(2, [&](Rank& rank) { run(rank, fixed); }); };
}

const planted::Cases kCases = {
    {"signal_not_awaited", on_two_ranks(signal_not_awaited)},
    {"raised_on_another_stream", on_two_ranks(raised_on_another_stream)},
    {"slot_filled_too_early", on_two_ranks(slot_filled_too_early)},
    {"stale_epoch", on_two_ranks(stale_epoch)},
    {"scope", on_two_ranks(scope)},
    {"host_barrier_only", on_two_ranks(host_barrier_only)},
    {"hosts_without_a_barrier", on_two_ranks(hosts_without_a_barrier)},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
