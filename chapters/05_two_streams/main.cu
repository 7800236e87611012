// Chapter 05: products on two streams in turns, so that the next one fills the last wave of the one before.
#include <memory>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/split_only.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "05_two_streams",
    .summary = "All-gather, then product: sub-products on two streams in turns fill each other's last wave.",
    .variants = {"split_only", "copy_engine_ring", "ring_two_streams", "pull_two_streams"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      GatherProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      bench.add("split_only", Role::kProduct, [&] {
        auto split = std::make_shared<SplitOnly<T>>(rank, problem.whole(), 2);
        return [split, &problem](cudaStream_t stream) {
          split->run(problem.whole_a(), problem.b(), problem.c(), stream);
        };
      });
      bench.add_algorithm<CopyEngineRing<T>>("copy_engine_ring", problem);
      bench.add_algorithm<RingTwoStreams<T>>("ring_two_streams", problem);
      bench.add_algorithm<PullTwoStreams<T>>("pull_two_streams", problem);
      bench.run(report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
