// Chapter 05: when two streams help, and by how much: the same products over a range of m, with one stream
// and with two, with transfers and without. And the four openings of the pull, side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/split_only.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "05_two_streams/split_waves.hpp"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/timeline.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// Adds the sub-products without transfers, which read all of A, on one stream or two.
template <Floating T>
void add_split_only(DenseBench& bench, GatherProblem<T>& problem, const char* name, int streams) {
  bench.add(name, Role::kProduct, [&problem, streams] {
    auto split = std::make_shared<SplitOnly<T>>(problem.rank(), problem.whole(), streams);
    return [split, &problem](cudaStream_t stream) {
      split->run(problem.whole_a(), problem.b(), problem.c(), stream);
    };
  });
}

/// Times the pull with each of its openings, compares all of their results, prints one line for each and adds
/// one result. With --timeline each is a section. Collective.
template <Floating T>
void compare_openings(GatherProblem<T>& problem, Options options, Report& report) {
  const std::vector<std::pair<const char*, Opening>> openings = {{"before", Opening::kBefore},
                                                                 {"beside", Opening::kBeside},
                                                                 {"copy_first", Opening::kCopyFirst},
                                                                 {"after", Opening::kAfter},
                                                                 {"barrier_after", Opening::kBarrierAfter}};
  const bool timeline = !options.timeline.empty();
  options.timeline.clear();  // drawn below, without GEMM only
  options.variants.clear();
  for (const auto& opening : openings) options.variants.push_back(opening.first);
  DenseBench bench(problem, options);
  for (const auto& [name, opening] : openings) bench.add_algorithm<PullTwoStreams<T>>(name, problem, opening);
  bench.verify();
  bench.time(false);
  Rank& rank = problem.rank();
  for (const auto& [name, opening] : openings) {
    if (!timeline) break;
    PullTwoStreams<T> pull(rank, problem.whole(), opening);
    rank.barrier();
    const TimelineSection section("pull, opening " + std::string(name));
    pull.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
  }
  if (rank.id() != 0) return;
  const double alone = bench.times_of("gemm_only")->device_ms.median;
  Table table({"opening", "us", "x GEMM only"});
  for (const auto& opening : openings) {
    const double ms = bench.times_of(opening.first)->device_ms.median;
    table.add_row({opening.first, fixed(1e3 * ms, 1), fixed(ms / alone, 3)});
    report.add_result({{"section", std::string("openings")},
                       {"opening", std::string(opening.first)},
                       {"gpus", std::int64_t{rank.size()}},
                       {"device_ms", ms},
                       {"ratio_to_gemm_only", ms / alone}});
  }
  std::cout << "\nPull: local copy and barrier, seen from the first product"
            << (backend::modelled_time() ? " (modelled)" : "") << "\n"
            << table;
}

/// Times GEMM only, split only and the ring, each with one stream and with two, for m times each factor;
/// prints one line for each m and adds one result. Each variant's last timed result is compared with GEMM
/// only's. Returns why there is no sweep; nothing if there is one. Collective.
template <Floating T>
std::string sweep_m(Rank& rank, Options options, const std::vector<double>& factors, Report& report) {
  options.variants = {"copy_engine_ring", "ring_two_streams", "split_one", "split_two", "transfers"};
  options.timeline.clear();
  int multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, rank.device()));
  Table table({"m", "waves", "on 1 stream", "on 2", "GEMM only us", "split 1", "split 2", "ring 1", "ring 2",
               "2 streams", "against no overlap"});
  for (const double factor : factors) {
    MatmulShape whole = options.shape;
    whole.m = std::max<std::int64_t>(1, static_cast<std::int64_t>(factor * static_cast<double>(whole.m)));
    GatherProblem<T> problem(rank, whole, options.seed);
    DenseBench bench(problem, options);
    add_split_only(bench, problem, "split_one", 1);
    add_split_only(bench, problem, "split_two", 2);
    bench.add_algorithm<CopyEngineRing<T>>("copy_engine_ring", problem);
    bench.add_algorithm<RingTwoStreams<T>>("ring_two_streams", problem);
    bench.add("transfers", Role::kCommunication, [&] {
      auto ring = std::make_shared<RingPush<T>>(rank, whole);
      return [ring, &problem](cudaStream_t stream) { ring->run(problem.a(), stream); };
    });
    bench.time(false);
    if (bench.times_of("ring_two_streams") == nullptr) return "without the ring there is no sweep";
    if (rank.id() != 0) continue;

    const auto us = [&](const char* name) { return 1e3 * bench.times_of(name)->device_ms.median; };
    const double alone = us("gemm_only"), one = us("copy_engine_ring"), two = us("ring_two_streams");
    const SplitWaves split =
        split_waves(problem.product(), rank.size(), backend::product_tile(), multiprocessors);
    const double serial = alone + us("transfers");  // all of A, then the product
    table.add_row({std::to_string(whole.m), std::to_string(split.whole), std::to_string(split.one_stream),
                   std::to_string(split.two_streams), fixed(alone, 1), fixed(us("split_one") / alone, 3),
                   fixed(us("split_two") / alone, 3), fixed(one / alone, 3), fixed(two / alone, 3),
                   fixed(one / two, 2) + " x", fixed(serial / two, 2) + " x"});
    report.add_result({{"section", std::string("sweep")},
                       {"gpus", std::int64_t{rank.size()}},
                       {"m", whole.m},
                       {"n", whole.n},
                       {"k", whole.k},
                       {"waves", split.whole},
                       {"waves_one_stream", split.one_stream},
                       {"waves_two_streams", split.two_streams},
                       {"gemm_only_ms", alone / 1e3},
                       {"split_one_stream_ms", us("split_one") / 1e3},
                       {"split_two_streams_ms", us("split_two") / 1e3},
                       {"ring_one_stream_ms", one / 1e3},
                       {"ring_two_streams_ms", two / 1e3},
                       {"transfers_ms", us("transfers") / 1e3},
                       {"speedup_of_two_streams", one / two},
                       {"speedup_of_overlap", serial / two}});
  }
  if (rank.id() == 0) {
    std::cout << "\nRing on one stream and on two, over m; times by GEMM only's"
              << (backend::modelled_time() ? " (modelled)" : "") << "\n"
              << table;
  }
  return "";
}

}  // namespace overlap
