// Chapter 21, lower bounds of a call: an empty kernel, a signal to another GPU, a read from it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "21_small_all_reduce/exchange.cuh"
#include "21_small_all_reduce/experiments/graph_timing.cuh"
#include "overlap/bench/results.hpp"
#include "overlap/data/text.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/words.hpp"

namespace overlap::small_all_reduce {

inline constexpr int kRepeats = 50;  ///< hops and reads in a kernel

/// For the cost of a launch.
__global__ inline void empty_kernel() {}

/// One thread: hops there and back, kRepeats of each. Rank 0 begins.
__global__ inline void hop(OnRanks<std::uint32_t> words, CallNumber calls) {
  const std::uint32_t begin = calls.read() * kRepeats;
  for (std::uint32_t i = 0; i < kRepeats; ++i) {
    if (words.rank == 0) raise_signal(words.at[1], begin + i + 1);
    await_signal(words.own(), begin + i + 1, calls.stop);
    if (words.rank == 1) raise_signal(words.at[0], begin + i + 1);
  }
  calls.end(begin / kRepeats);
}

/// One thread makes dependent reads of 16 bytes: each holds the index of the next one.
__global__ inline void read_in_a_chain(const Words* from, std::uint32_t* end) {
  std::uint32_t at = 0;
  for (int i = 0; i < kRepeats; ++i) at = load_relaxed(from + at).word[0];
  *end = at;
}

/// Times these kernels on ranks 0 and 1; rank 0 saves one result of section "floor" for each. Collective.
inline void time_floor(Rank& rank, const BenchSettings& settings, Results& results) {
  PeerBuffer<std::uint32_t> words(rank, 2);
  fill(rank, words, 0U);
  CallCounter counter(rank, 0);
  PeerBuffer<Words> chain(rank, kRepeats);
  std::vector<Words> links(kRepeats);
  for (std::uint32_t i = 0; i < kRepeats; ++i) links[i] = {{(i + 7) % kRepeats, 0, 0, 0}};
  CUDA_CHECK(
      cudaMemcpyAsync(chain.local(), links.data(), chain.bytes(), cudaMemcpyHostToDevice, rank.stream()));
  rank.synchronize(rank.stream());
  rank.barrier();
  load_kernel(empty_kernel);
  load_kernel(hop);
  load_kernel(read_in_a_chain);
  const bool first_two = rank.id() < 2;
  const auto read_from = [&](int from) {
    return [&rank, &chain, &words, first_two, from](cudaStream_t stream) {
      if (!first_two) return;
      read_in_a_chain<<<1, 1, 0, stream>>>(chain.on(from == 0 ? rank.id() : 1 - rank.id()),
                                           words.local() + 1);
      CUDA_CHECK(cudaGetLastError());
    };
  };
  const std::vector<GraphedCall> calls = {{"empty kernel",
                                           [](cudaStream_t stream) {
                                             empty_kernel<<<1, 1, 0, stream>>>();
                                             CUDA_CHECK(cudaGetLastError());
                                           }},
                                          {"signal, one way",
                                           [&](cudaStream_t stream) {
                                             if (!first_two) return;
                                             hop<<<1, 1, 0, stream>>>(on_ranks(rank, words),
                                                                      counter.number());
                                             CUDA_CHECK(cudaGetLastError());
                                           }},
                                          {"read of 16 bytes, own memory", read_from(0)},
                                          {"read of 16 bytes, a peer's", read_from(1)}};
  const std::vector<GraphTimes> times = time_in_graphs(rank, calls, settings);
  if (rank.id() != 0) return;
  const double empty = times[0].one_of_many;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const double repeats = i == 0 ? 1 : i == 1 ? 2 * kRepeats : kRepeats;
    const double ms = (times[i].one_of_many - (i == 0 ? 0 : empty)) / repeats;
    if (i == 0) {
      results.add_result({{"section", std::string("floor")},
                          {"what", std::string("graph of one empty kernel")},
                          {"us", 1e3 * times[i].alone}});
      std::cout << "graph of one empty kernel: " << fixed(1e3 * times[i].alone, 2) << " us\n";
    }
    results.add_result({{"section", std::string("floor")}, {"what", calls[i].name}, {"us", 1e3 * ms}});
    std::cout << calls[i].name << ": " << fixed(1e3 * ms, 2) << " us\n";
  }
}

}  // namespace overlap::small_all_reduce
