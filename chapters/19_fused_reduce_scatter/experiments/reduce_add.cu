// Experiment of chapter 19: partial sums added on arrival by TMA, beside partial sums in slots.
#include "19_fused_reduce_scatter/experiments/reduce_add.cuh"

#include <string>
#include <vector>

#include "19_fused_reduce_scatter/experiments/same_bits.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

const ChapterInfo kExperiment = {
    .name = "19_fused_reduce_scatter/reduce_add",
    .summary = "Partial sums that TMA adds up on arrival, in the order of arrival, beside slots.",
    .variants = {"fused", "fused_f32", "added_up", "added_up_f32"},
    .on_virtual_gpus = {.shape = {512, 512, 512}, .gpus = 4, .iterations = 2, .warmup = 1},
    .on_real_gpus = {.shape = {4096, 4096, 16384}, .gpus = 4, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {70, 72, 192}, .gpus = 2, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

/// Adds the algorithm, and to `memory` the bytes that it allocates for slots or sums.
template <typename Algorithm, SixteenBit T>
void add(DenseBench& bench, ScatterProblem<T>& problem, const std::string& name,
         std::vector<Memory>& memory) {
  bench.add(name, algorithm<Algorithm>(), problem);
  memory.push_back({name, Algorithm::cost(problem.whole(), problem.rank().size(), 0).memory});
}

void run(const Options& options, Report& report) {
  require_all_sizes(options.shape, options.gpus);
  run_dense_problem<ScatterProblem, __half, __nv_bfloat16>(
      options, [&]<SixteenBit T>(ScatterProblem<T>& problem) {
        DenseBench bench(problem, options);
        std::vector<Memory> memory;
        add<FusedReduceScatter<T>>(bench, problem, "fused", memory);
        add<FusedReduceScatter<T, F32Wire>>(bench, problem, "fused_f32", memory);
        add<ReduceAdd<T>>(bench, problem, "added_up", memory);
        add<ReduceAdd<T, F32Wire>>(bench, problem, "added_up_f32", memory);
        bench.run(report);
        report_bits(bench, problem, memory, report);
      });
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::fused_reduce_scatter::kExperiment,
                               overlap::fused_reduce_scatter::run);
}
