// Chapter 05: products on two streams in turns, so that the next one fills the last wave of the one before.
#include <memory>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/split_only.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/chapter.hpp"
#include "overlap/dense_bench.hpp"
#include "overlap/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "05_two_streams",
    .summary = "All-gather, then product: sub-products on two streams in turns fill each other's last wave.",
    .variants = {"copy_engine_ring", "split_only_one", "split_only", "ring_two_streams", "pull_two_streams",
                 "pull_beside", "pull_copy_first", "pull_after", "pull_barrier_after"},
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 384, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

/// Adds the products without transfers, which read all of A.
template <Floating T>
void add_split_only(DenseBench& bench, GatherProblem<T>& problem, const char* name, int streams) {
  bench.add(name, Role::kProduct, [&problem, streams] {
    auto split = std::make_shared<SplitOnly<T>>(problem.rank(), problem.whole(), streams);
    return [split, &problem](cudaStream_t stream) {
      split->run(problem.whole_a(), problem.b(), problem.c(), stream);
    };
  });
}

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      GatherProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options, kChapter);
      add_split_only(bench, problem, "split_only_one", 1);
      add_split_only(bench, problem, "split_only", 2);
      bench.add_algorithm<CopyEngineRing<T>>("copy_engine_ring", problem);
      bench.add_algorithm<RingTwoStreams<T>>("ring_two_streams", problem);
      bench.add_algorithm<PullTwoStreams<T>>("pull_two_streams", problem);
      bench.add_algorithm<PullTwoStreams<T>>("pull_beside", problem, Opening::kBeside);
      bench.add_algorithm<PullTwoStreams<T>>("pull_copy_first", problem, Opening::kCopyFirst);
      bench.add_algorithm<PullTwoStreams<T>>("pull_after", problem, Opening::kAfter);
      bench.add_algorithm<PullTwoStreams<T>>("pull_barrier_after", problem, Opening::kBarrierAfter);
      bench.verify();
      bench.time();
      bench.print();
      bench.save(report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
