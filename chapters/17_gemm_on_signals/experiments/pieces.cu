// Experiment of chapter 17: each shard in pieces of its columns, with a signal behind each.
#include <string>

#include "16_tensor_core_gemm/program.hpp"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::gemm_on_signals {
namespace {

const ChapterInfo kExperiment = {
    .name = "17_gemm_on_signals/pieces",
    .summary = "Each shard in pieces of its columns, with a signal behind each.",
    .on_virtual_gpus = {.shape = {0, 0, 128}, .per_gpu = {256, 512, 0}, .gpus = 2, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 72}, .per_gpu = {70, 64, 0}, .gpus = 2, .iterations = 1}},
    .types = {ElementType::kF16},
};

constexpr auto kVariants = [](DenseTable<GatherProblem<__half>>& table) {
  for (const int pieces : {1, 2, 4, 8})
    table.add("pieces_" + std::to_string(pieces), algorithm<GemmOnSignals<__half>>(pieces));
};

}  // namespace
}  // namespace overlap::gemm_on_signals

int main(int argc, char** argv) {
  using namespace overlap::gemm_on_signals;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
