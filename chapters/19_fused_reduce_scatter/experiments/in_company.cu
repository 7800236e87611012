// Experiment of chapter 19: what it costs to leave multiprocessors to NCCL, and how an all-reduce beside the
// kernel slows both down. Chapter 18's experiment, with this chapter's kernel.
#include "18_ring_in_kernel/experiments/in_company.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

const ChapterInfo kExperiment = {
    .name = "19_fused_reduce_scatter/in_company",
    .summary = "Multiprocessors left to NCCL, and an all-reduce beside the fused kernel.",
    .on_virtual_gpus = {.shape = {512, 512, 0}, .per_gpu = {0, 0, 128}, .gpus = 3, .iterations = 1},
    .on_real_gpus =
        {.shape = {4096, 4096, 0}, .per_gpu = {0, 0, 4096}, .gpus = 4, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {70, 72, 0}, .per_gpu = {0, 0, 96}, .gpus = 2, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16},
};

constexpr auto kVariants = [](DenseTable<ScatterProblem<__half>>& table) {
  ring_in_kernel::add_gradients(table, {4, 16});
  ring_in_kernel::add_in_company<FusedReduceScatter<__half>>(table, "fused", {0, 4, 8, 16});
};

}  // namespace
}  // namespace overlap::fused_reduce_scatter

int main(int argc, char** argv) {
  using namespace overlap::fused_reduce_scatter;
  return overlap::dense_chapter_main<overlap::ScatterProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = [](const overlap::Options& options, overlap::Report&) {
        require_all_sizes(options.shape, options.gpus);
      }});
}
