// Chapter 05: products on two streams in turns, so that the next one fills the last wave of the one before.
#include <string>
#include <vector>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "05_two_streams/sweep.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "05_two_streams",
    .summary = "All-gather, then product: sub-products on two streams in turns fill each other's last wave.",
    .variants = {"split_only", "copy_engine_ring", "ring_two_streams", "pull_two_streams", "openings",
                 "sweep"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

void run(const Options& options) {
  // m of the sweep, by the m that was asked for. A CPU that multiplies takes its time.
  const std::vector<double> factors = backend::modelled_time()
                                          ? std::vector<double>{1, 2, 4}
                                          : std::vector<double>{0.125, 0.25, 0.5, 1, 2, 4};
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      GatherProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      add_split_only(bench, problem, "split_only", 2);
      bench.add_algorithm<CopyEngineRing<T>>("copy_engine_ring", problem);
      bench.add_algorithm<RingTwoStreams<T>>("ring_two_streams", problem);
      bench.add_algorithm<PullTwoStreams<T>>("pull_two_streams", problem);
      bench.run(report);
      const bool is_first = rank.id() == 0;
      if (options.runs("openings"))
        report.run_part("openings", is_first, [&] { compare_openings(problem, options, report); });
      if (options.runs("sweep")) {
        report.run_part("sweep", is_first, [&] {
          const std::string reason = sweep_m<T>(rank, options, factors, report);
          if (!reason.empty()) throw Skip(reason);
        });
      }
      if (is_first) report.require_some();
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
