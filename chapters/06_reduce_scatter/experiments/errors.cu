// Experiment of chapter 06: how far the results are from the sums in f32, and how far they may be.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/experiments/errors.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::reduce_scatter {
namespace {

const ChapterInfo kExperiment = scatter_chapter({
    .name = "06_reduce_scatter/errors",
    .summary = "What rounding costs: each algorithm against sums in f32, and the proven bound.",
    .variants = {"nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all"},
    .on_real_gpus = {.shape = {0, 4096, 0}, .per_gpu = {1024, 0, 4096}, .gpus = 16, .iterations = 1},
});

void run(const Options& options, Report& report) {
  run_dense_problem<ScatterProblem>(options, [&]<Floating T>(ScatterProblem<T>& problem) {
    DenseBench bench(problem, options);
    bench.add("nccl", algorithm<MultiplyThenScatter<T>>(), problem);
    bench.add("rotating", algorithm<RotatingAccumulators<T>>(), problem);
    bench.add("rotating_f32", algorithm<RotatingAccumulators<T, float>>(), problem);
    bench.add("rotating_zero_filled", algorithm<RotatingAccumulators<T>>(Start::kZeros), problem);
    bench.add("all_to_all", algorithm<AllToAllSum<T>>(), problem);
    bench.measure(report, false);  // and so on random normals
    report_errors(bench, problem, report);
  });
}

}  // namespace
}  // namespace overlap::reduce_scatter

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::reduce_scatter::kExperiment,
                               overlap::reduce_scatter::run);
}
