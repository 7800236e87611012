// Measures what the chapters are built on, on 2 or more GPUs: how long a signal takes, how exactly a gate
// opens, what a call costs the host, how fast copy engines are. link_speed [GPUS]; without a number all GPUs.
// Exit status as the chapters'.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cuda/atomic>
#include <iostream>
#include <string>
#include <vector>

#include "overlap/bench/gate.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/program/chapter.hpp"

namespace overlap {
namespace {

using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

/// Two GPUs answer each other `rounds` times. `clocks`: time on this GPU's own clock.
template <class T>
__global__ void ping_pong(T* mine, T* theirs, unsigned rounds, bool begins, const volatile unsigned* stop,
                          long long* clocks) {
  unsigned looks = 0;
  const long long start = clock64();
  for (unsigned round = 1; round <= rounds; ++round) {
    if (begins) Flag(*theirs).store(round, cuda::memory_order_release);
    while (Flag(*mine).load(cuda::memory_order_acquire) < round) {
      if (++looks % 1024 == 0 && *stop != 0) return;  // that word is on the host, and far
    }
    if (!begins) Flag(*theirs).store(round, cuda::memory_order_release);
  }
  *clocks = clock64() - start;
}

/// Tells every GPU that this one is there, and waits until all are.
template <class T>
__device__ long long meet_once(T* const* flags, int rank, int ranks, unsigned round,
                               const volatile unsigned* stop) {
  unsigned looks = 0;
  const long long start = clock64();
  for (int peer = 0; peer < ranks; ++peer) Flag(flags[peer][rank]).store(round, cuda::memory_order_release);
  for (int peer = 0; peer < ranks; ++peer) {
    while (Flag(flags[rank][peer]).load(cuda::memory_order_acquire) < round) {
      if (++looks % 1024 == 0 && *stop != 0) return 0;
    }
  }
  return clock64() - start;
}

/// The GPUs meet twice. The first time some wait for the last one to start; the second time all start
/// together.
template <class T>
__global__ void meet(T* const* flags, int rank, int ranks, unsigned round, const volatile unsigned* stop,
                     long long* clocks) {
  clocks[0] = meet_once(flags, rank, ranks, 2 * round, stop);
  clocks[1] = meet_once(flags, rank, ranks, 2 * round + 1, stop);
}

template <class T>
__global__ void nothing(T*) {}

double largest(Rank& rank, double value) {
  double result = value;
  for (const double other : rank.exchange(value)) result = std::max(result, other);
  return result;
}

void line(Rank& rank, const std::string& what, double value, const char* unit) {
  if (rank.id() == 0) std::cout << what << ": " << fixed(value, 2) << " " << unit << "\n";
}

/// Median device time of `enqueue` in microseconds, on the slowest rank.
double device_us(Rank& rank, int iterations, const std::function<void(cudaStream_t)>& enqueue) {
  return 1e3 * time_variants(rank, {{"", enqueue}}, iterations, 2).front().device_ms.median;
}

void measure_signals(Rank& rank) {
  constexpr unsigned kRounds = 100;
  Signals signals(rank, 1);
  const int partner = rank.id() ^ 1;
  const bool plays = partner < rank.size();
  const double by_streams = device_us(rank, 20, [&](cudaStream_t stream) {
    for (unsigned round = 0; round < kRounds; ++round) {
      signals.begin_call();
      if (!plays || rank.id() > 1) continue;
      if (rank.id() == 0) signals.raise(partner, 0, stream);
      signals.await(0, stream);
      if (rank.id() == 1) signals.raise(partner, 0, stream);
    }
  });
  line(rank, "signal there and back, by streams", by_streams / kRounds, "us");
}

void measure_flags(Rank& rank, double& clocks_per_us) {
  constexpr unsigned kRounds = 1000;
  PeerBuffer<unsigned> flags(rank, 1);
  PinnedBuffer<long long> clocks(1);
  *clocks.data() = 0;
  double us = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    CUDA_CHECK(cudaMemset(flags.local(), 0, sizeof(unsigned)));
    CUDA_CHECK(cudaDeviceSynchronize());
    Event start(rank.device()), stop(rank.device());
    rank.barrier();
    CUDA_CHECK(cudaEventRecord(start, rank.stream()));
    if (rank.id() < 2) {
      ping_pong<<<1, 1, 0, rank.stream()>>>(flags.local(), flags.on(1 - rank.id()), kRounds, rank.id() == 0,
                                            rank.abort_flag(), clocks.data());
      CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaEventRecord(stop, rank.stream()));
    rank.synchronize(rank.stream());
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    us = 1e3 * milliseconds;
    rank.barrier();
  }
  const double own = rank.id() == 0 ? static_cast<double>(*clocks.data()) : 0;
  const double total = rank.exchange(own).front();
  const double total_us = rank.exchange(us).front();
  clocks_per_us = total / total_us;
  line(rank, "flag there and back, by kernels", total_us / kRounds, "us");
}

void measure_gate(Rank& rank, double clocks_per_us) {
  PeerBuffer<unsigned> flags(rank, static_cast<std::size_t>(rank.size()));
  CUDA_CHECK(cudaMemset(flags.local(), 0, flags.bytes()));
  std::vector<unsigned*> addresses;
  for (int peer = 0; peer < rank.size(); ++peer) addresses.push_back(flags.on(peer));
  const DeviceBuffer<unsigned*> table(rank.device(), addresses.size());
  CUDA_CHECK(cudaMemcpy(table.data(), addresses.data(), table.bytes(), cudaMemcpyHostToDevice));
  PinnedBuffer<long long> clocks(2);
  meet<<<1, 1, 0, rank.stream()>>>(table.data(), 0, 0, 0u, rank.abort_flag(),
                                   clocks.data());  // loads the kernel
  CUDA_CHECK(cudaDeviceSynchronize());
  Gate gate(rank);
  std::vector<double> skews;
  for (unsigned round = 1; round <= 30; ++round) {
    gate.close(rank.stream());
    meet<<<1, 1, 0, rank.stream()>>>(table.data(), rank.id(), rank.size(), round, rank.abort_flag(),
                                     clocks.data());
    CUDA_CHECK(cudaGetLastError());
    gate.open();
    rank.synchronize(rank.stream());
    const double first = largest(rank, static_cast<double>(clocks[0]));
    const double second = largest(rank, static_cast<double>(clocks[1]));
    if (round > 5) skews.push_back(std::max(0.0, (first - second) / clocks_per_us));
  }
  const Summary summary = summarise(skews);
  line(rank, "gate: first GPU to last, median", summary.median, "us");
  line(rank, "gate: first GPU to last, worst of 25", summary.max, "us");
}

void measure_host_calls(Rank& rank) {
  constexpr int kCalls = 400;
  Signals signals(rank, 1);
  PeerBuffer<int> data(rank, 1024);
  const Stream stream(rank.device()), other(rank.device());
  const Event event(rank.device(), cudaEventDisableTiming);
  const auto cost = [&](const char* what, const std::function<void()>& call) {
    std::vector<double> us;
    for (int attempt = 0; attempt < 5; ++attempt) {
      rank.barrier();
      const HostTimer timer;
      for (int i = 0; i < kCalls; ++i) call();
      us.push_back(1e3 * timer.milliseconds() / kCalls);
      rank.synchronize(stream);
      rank.synchronize(other);
    }
    line(rank, std::string("host, all ranks at once: ") + what, largest(rank, summarise(us).median), "us");
  };
  cost("kernel launch", [&] { nothing<<<1, 1, 0, stream>>>(data.local()); });
  cost("copy of 4 KiB to the next GPU", [&] {
    CUDA_CHECK(
        cudaMemcpyAsync(data.on(rank.next()), data.local(), data.bytes(), cudaMemcpyDeviceToDevice, stream));
  });
  cost("signal raised and awaited", [&] {
    signals.begin_call();
    signals.raise(rank.next(), 0, stream);
    signals.await(0, other);
  });
  cost("event recorded and waited for", [&] {
    CUDA_CHECK(cudaEventRecord(event, stream));
    CUDA_CHECK(cudaStreamWaitEvent(other, event, 0));
  });
}

void measure_copies(Rank& rank, std::size_t megabytes) {
  constexpr int kCopies = 10;
  const std::size_t bytes = megabytes << 20;
  PeerBuffer<std::byte> from(rank, bytes), to(rank, bytes);
  const auto rate = [&](bool all, bool push) {
    const double us = device_us(rank, 10, [&](cudaStream_t stream) {
      if (!all && rank.id() != 0) return;
      for (int i = 0; i < kCopies; ++i) {
        CUDA_CHECK(cudaMemcpyAsync(push ? to.on(rank.next()) : to.local(),
                                   push ? from.local() : from.on(rank.next()), bytes,
                                   cudaMemcpyDeviceToDevice, stream));
      }
    });
    return static_cast<double>(bytes) * kCopies / us * 1e-3;
  };
  const std::string size = std::to_string(megabytes) + " MiB, ";
  line(rank, size + "one pair, push", rate(false, true), "GB/s");
  line(rank, size + "one pair, pull", rate(false, false), "GB/s");
  line(rank, size + "all in a ring, push", rate(true, true), "GB/s for each GPU");
  line(rank, size + "all in a ring, pull", rate(true, false), "GB/s for each GPU");
}

void measure(int gpus) {
  int there = 0;
  CUDA_CHECK(cudaGetDeviceCount(&there));
  if (gpus == 0) gpus = there;
  if (gpus < 2 || gpus > there) throw Skip("needs 2 GPUs or more; " + std::to_string(there) + " are here");
  std::cout << gpus << " GPUs (" << backend::name() << ")"
            << (backend::modelled_time() ? ", times are modelled" : "") << "\n";
  run_ranks(gpus, [](Rank& rank) {
    nothing<<<1, 1, 0, rank.stream()>>>(static_cast<int*>(nullptr));
    rank.synchronize(rank.stream());
    measure_signals(rank);
    double clocks_per_us = 0;
    measure_flags(rank, clocks_per_us);
    measure_gate(rank, clocks_per_us);
    measure_host_calls(rank);
    for (const std::size_t megabytes : {1, 8, 64}) measure_copies(rank, megabytes);
  });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  return overlap::run_and_report(
      "link_speed",
      [&] {
        const std::string reason = overlap::backend::unavailable();
        if (!reason.empty()) throw overlap::Skip(reason);
        const int gpus = argc > 1 ? std::atoi(argv[1]) : 0;
        if (argc > 2 || gpus < 0 || gpus > 16) throw overlap::UsageError("link_speed [GPUS], 2 to 16");
        overlap::measure(gpus);
      },
      std::cerr);
}
