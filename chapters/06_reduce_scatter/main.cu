// Chapter 06: product and reduce-scatter by NCCL, by accumulators that go round, and by all-to-all and one
// sum.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::reduce_scatter {
namespace {

const ChapterInfo kChapter = scatter_chapter({
    .name = "06_reduce_scatter",
    .summary =
        "C = X W, X by columns, W by rows: each rank gets its rows of the sum, while products still run.",
    .variants = {"nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all", "split_only",
                 "communication_only"},
});

/// The algorithms: the whole problem, verified.
template <Floating T>
void add_algorithms(DenseBench& bench, ScatterProblem<T>& problem) {
  bench.add_algorithm<MultiplyThenScatter<T>>("nccl", problem);
  bench.add_algorithm<RotatingAccumulators<T>>("rotating", problem);
  bench.add_algorithm<RotatingAccumulators<T, float>>("rotating_f32", problem);
  bench.add_algorithm<RotatingAccumulators<T>>("rotating_zero_filled", problem, Start::kZeros);
  bench.add_algorithm<AllToAllSum<T>>("all_to_all", problem);
}

/// Parts of all_to_all alone: what splitting the product costs, and how long the transfers take.
template <Floating T>
void add_parts(DenseBench& bench, ScatterProblem<T>& problem) {
  bench.add_part<AllToAllSum<T>>(
      "split_only", Role::kPart, problem,
      [](auto& parts, auto& data, auto stream) { parts.run_products(data.a(), data.b(), stream); });
  bench.add_part<AllToAllSum<T>>("communication_only", Role::kCommunication, problem,
                                 [](auto& parts, auto&, auto stream) { parts.run_transfers(stream); });
}

void run(const Options& options, Report& report) {
  run_dense_chapter<ScatterProblem>(options, report, [](DenseBench& bench, auto& problem) {
    add_algorithms(bench, problem);
    add_parts(bench, problem);
  });
}

}  // namespace
}  // namespace overlap::reduce_scatter

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::reduce_scatter::kChapter, overlap::reduce_scatter::run);
}
