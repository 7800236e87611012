// Chapter NN: verified on every element, then timed beside the product alone.
#include "NN_name/lesson.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "NN_name",
    .summary = "C = A B, A by rows and B by columns: broadcasts of A, then the product.",
    .variants = {"new_chapter"},
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
};

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      GatherProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      bench.add_algorithm<NewChapter<T>>("new_chapter", problem);
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
