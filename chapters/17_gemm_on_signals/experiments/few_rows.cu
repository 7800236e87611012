// Experiment of chapter 17: few rows, pushed by blocks of the kernel instead of copy engines.
#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "17_gemm_on_signals/experiments/pushed_by_blocks.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::gemm_on_signals {
namespace {

const ChapterInfo kExperiment = {
    .name = "17_gemm_on_signals/few_rows",
    .summary = "Few rows: blocks of the kernel push, in the order of k, beside copy engines.",
    .on_virtual_gpus = {.shape = {128, 0, 1024}, .per_gpu = {0, 256, 0}, .gpus = 2, .iterations = 1},
    .on_real_gpus =
        {.shape = {256, 0, 8192}, .per_gpu = {0, 3584, 0}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {70, 0, 328}, .per_gpu = {0, 64, 0}, .gpus = 3, .iterations = 1}},
    .types = {ElementType::kF16},
};

constexpr auto kVariants = [](DenseTable<GatherProblem<__half>>& table) {
  using namespace tensor_core_gemm;  // NOLINT(google-build-using-namespace)
  table.add("fitting", product<FittingGemm<__half>>());
  table.add("gemm_on_signals", algorithm<Fitting<GemmOnSignals<__half>>>());
  table.add("pushed_by_blocks", algorithm<Fitting<PushedByBlocks<__half>, product_of_a_rank>>());
};

}  // namespace
}  // namespace overlap::gemm_on_signals

int main(int argc, char** argv) {
  using namespace overlap::gemm_on_signals;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
