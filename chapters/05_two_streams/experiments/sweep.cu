// Experiment of chapter 05: when two streams help, and by how much: the same products over a range of m, with
// one stream and with two, with transfers and without.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/split_only.cuh"
#include "05_two_streams/experiments/split_waves.hpp"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/table.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kExperiment = {
    .name = "05_two_streams/sweep",
    .summary = "One stream and two over a range of m, as waves and as times.",
    .variants = {"sweep"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

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

/// Times GEMM only, split only and the ring, each with one stream and with two, for m times each factor;
/// prints one line for each m and adds one result. Each variant's last timed result is compared with GEMM
/// only's. Throws Skip, with the reason, if there is no sweep. Collective.
template <Floating T>
void sweep(Rank& rank, Options options, const std::vector<double>& factors, Report& report) {
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
    if (factor == 1) print_shares(problem);
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
    if (bench.times_of("ring_two_streams") == nullptr) throw Skip("without the ring there is no sweep");
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
}

void run(const Options& options) {
  // m of the sweep, by the m that was asked for. A CPU that multiplies takes its time.
  const std::vector<double> factors = backend::modelled_time()
                                          ? std::vector<double>{1, 2, 4}
                                          : std::vector<double>{0.125, 0.25, 0.5, 1, 2, 4};
  Report report(kExperiment, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(
        options.type, [&](auto tag) { sweep<typename decltype(tag)::type>(rank, options, factors, report); });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::kExperiment, overlap::run);
}
