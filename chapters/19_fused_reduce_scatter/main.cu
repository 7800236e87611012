// Chapter 19: product and reduce-scatter in one kernel, beside chapter 06's and NCCL's.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "19_fused_reduce_scatter/product_alone.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

const ChapterInfo kChapter = {
    .name = "19_fused_reduce_scatter",
    .summary = "C = X W, X by columns, W by rows: one kernel multiplies, sends partial tiles and adds them.",
    .variants = {"nccl", "rotating", "all_to_all", SixteenBitWire::kName, F32Wire::kName, "own_product"},
    .on_virtual_gpus = {.shape = {512, 512, 512}, .gpus = 4, .iterations = 2, .warmup = 1},
    .on_real_gpus = {.shape = {4096, 4096, 16384}, .gpus = 4, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {70, 72, 192}, .gpus = 2, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

template <SixteenBit T>
void add_algorithms(DenseBench& bench, ScatterProblem<T>& problem) {
  bench.add_algorithm<reduce_scatter::MultiplyThenScatter<T>>("nccl", problem);
  bench.add_algorithm<reduce_scatter::RotatingAccumulators<T>>("rotating", problem);
  bench.add_algorithm<reduce_scatter::AllToAllSum<T>>("all_to_all", problem);
  bench.add_algorithm<FusedReduceScatter<T>>(SixteenBitWire::kName, problem);
  bench.add_algorithm<FusedReduceScatter<T, F32Wire>>(F32Wire::kName, problem);
  bench.add_part<ProductAlone<T>>(
      "own_product", Role::kPart, problem,
      [](auto& product, auto& data, auto stream) { product.run(data.a(), data.b(), stream); });
}

void run(const Options& options, Report& report) {
  require_all_sizes(options.shape, options.gpus);
  run_dense_chapter<ScatterProblem, __half, __nv_bfloat16>(
      options, report,
      []<SixteenBit T>(DenseBench& bench, ScatterProblem<T>& problem) { add_algorithms(bench, problem); });
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::fused_reduce_scatter::kChapter,
                               overlap::fused_reduce_scatter::run);
}
