// Experiment of chapter 21: chapter 07's block with few tokens: this chapter's all-reduce against the kernels
// of chapters 17 and 19, which shard the tokens.
#include "07_mlp_block/vanilla_block.cuh"
#include "19_fused_reduce_scatter/experiments/fused_block.cuh"
#include "21_small_all_reduce/experiments/small_block.cuh"
#include "21_small_all_reduce/experiments/sum_in_epilogue.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/bench/mlp_problem.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::small_all_reduce {
namespace {

const ChapterInfo kExperiment = {
    .name = "21_small_all_reduce/block",
    .summary = "Y = X + act(norm(X) W1) W2: m tokens, feed-forward size n, hidden size k.",
    .on_virtual_gpus = {.shape = {8, 0, 512}, .per_gpu = {0, 128, 0}, .gpus = 2, .iterations = 1},
    .on_real_gpus = {.shape = {16, 28672, 8192}, .gpus = 8, .iterations = 50, .warmup = 5},
    .on_race_build = {{.shape = {3, 0, 48}, .per_gpu = {0, 64, 0}, .gpus = 2, .iterations = 1}},
    .types = {ElementType::kBf16, ElementType::kF16},
};

constexpr auto kVariants = []<SixteenBit T>(DenseTable<MlpProblem<T>>& table) {
  const auto on_whole = [](auto& block, auto& data, cudaStream_t stream) {
    block.run(data.whole_x(), data.b(), data.whole_y(), stream);
  };
  table.add("vanilla", part<mlp_block::VanillaBlock<T>>(Role::kAlgorithm, on_whole));
  table.add("two_shot", part<SmallBlock<T, GemmThen<T, TwoShot<T>>>>(Role::kAlgorithm, on_whole));
  table.add("word_is_flag", part<SmallBlock<T, GemmThen<T, WordIsFlag<T>>>>(Role::kAlgorithm, on_whole));
  table.add("sum_in_epilogue", part<SmallBlock<T, SumInEpilogue<T>>>(Role::kAlgorithm, on_whole));
  table.add("fused", algorithm<fused_reduce_scatter::FusedBlock<T>>());
};

}  // namespace
}  // namespace overlap::small_all_reduce

int main(int argc, char** argv) {
  using namespace overlap::small_all_reduce;
  return overlap::dense_chapter_main<overlap::MlpProblem, __nv_bfloat16, __half>(argc, argv, kExperiment,
                                                                                 kVariants);
}
