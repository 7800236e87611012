// Experiment of chapter 19: chapter 07's block with both collectives in the kernels of its GEMMs, beside the
// forms of chapter 07.
#include "07_mlp_block/overlapped_block.cuh"
#include "07_mlp_block/sequence_block.cuh"
#include "07_mlp_block/vanilla_block.cuh"
#include "19_fused_reduce_scatter/experiments/fused_block.cuh"
#include "overlap/bench/mlp_problem.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

const ChapterInfo kExperiment = {
    .name = "19_fused_reduce_scatter/block",
    .summary = "Y = X + act(norm(X) W1) W2: m tokens, feed-forward size n, hidden size k.",
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {256, 512, 0}, .gpus = 2, .iterations = 1},
    .on_real_gpus = {.shape = {8192, 28672, 8192}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 72}, .per_gpu = {35, 64, 0}, .gpus = 2, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
};

/// Adds `fused`. Where TMA or wgmma cannot be used, the program leaves it out and prints the reason.
template <Floating T>
void add_fused(DenseTable<MlpProblem<T>>& table) {
  if constexpr (sizeof(T) == 2) {
    table.add("fused", algorithm<FusedBlock<T>>());
  } else {
    table.add("fused",
              MadeBy{Role::kAlgorithm, [](MlpProblem<T>&) -> DenseBench::Enqueue {
                       throw Skip("its kernels multiply elements of 16 bits, and those of f32 have 32");
                     }});
  }
}

constexpr auto kVariants = []<Floating T>(DenseTable<MlpProblem<T>>& table) {
  const auto on_whole = [](auto& block, auto& data, cudaStream_t stream) {
    block.run(data.whole_x(), data.b(), data.whole_y(), stream);
  };
  table.add("vanilla", part<mlp_block::VanillaBlock<T>>(Role::kAlgorithm, on_whole));
  table.add("sequence_parallel", algorithm<mlp_block::SequenceParallelBlock<T>>());
  table.add("overlapped", algorithm<mlp_block::OverlappedBlock<T>>());
  add_fused(table);
};

}  // namespace
}  // namespace overlap::fused_reduce_scatter

int main(int argc, char** argv) {
  using namespace overlap::fused_reduce_scatter;
  return overlap::dense_chapter_main<overlap::MlpProblem>(argc, argv, kExperiment, kVariants);
}
