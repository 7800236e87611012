// Experiment of chapter 06: how far the results are from the sums in f32, and how far they may be.
#include <string>

#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/experiments/errors.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/program/chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kExperiment = {
    .name = "06_reduce_scatter/errors",
    .summary = "What rounding costs: each algorithm against sums in f32, and the proven bound.",
    .variants = {"nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all"},
    .on_virtual_gpus = {.shape = {0, 512, 0}, .per_gpu = {128, 0, 512}, .gpus = 4, .iterations = 1},
    .on_real_gpus = {.shape = {0, 4096, 0}, .per_gpu = {1024, 0, 4096}, .gpus = 16, .iterations = 1},
    .on_race_build = {{.shape = {0, 24, 0}, .per_gpu = {24, 0, 32}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

void run(const Options& options) {
  Report report(kExperiment, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      ScatterProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      bench.add_algorithm<MultiplyThenScatter<T>>("nccl", problem);
      bench.add_algorithm<RotatingAccumulators<T>>("rotating", problem);
      bench.add_algorithm<RotatingAccumulators<T, float>>("rotating_f32", problem);
      bench.add_algorithm<RotatingAccumulators<T>>("rotating_zero_filled", problem, Start::kZeros);
      bench.add_algorithm<AllToAllSum<T>>("all_to_all", problem);
      bench.verify();
      bench.time(false);  // and so on random normals
      report_errors(bench, problem, report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::kExperiment, overlap::run);
}
