// Experiment of chapter 21: GEMM and all-reduce in one kernel, beside a GEMM followed by word_is_flag.
#include "21_small_all_reduce/experiments/sum_in_epilogue.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::small_all_reduce {
namespace {

const ChapterInfo kExperiment = {
    .name = "21_small_all_reduce/in_epilogue",
    .summary = "C = A B of few rows, whole on every rank: the GEMM's epilogue sends the partial sums.",
    .on_virtual_gpus = {.shape = {4, 512, 0}, .per_gpu = {0, 0, 64}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {16, 8192, 0}, .per_gpu = {0, 0, 3584}, .gpus = 16, .iterations = 100, .warmup = 10},
    .types = {ElementType::kBf16, ElementType::kF16},
};

constexpr auto kVariants = []<SixteenBit T>(DenseTable<AllReduceProblem<T>>& table) {
  const Plan<DenseCall> by_kernels = {.max_ranks = kMaxRanks, .uncounted = kByKernels};
  table.add("nccl", algorithm<GemmThen<T, NcclAllReduce<T>>>());
  table.add("word_is_flag", algorithm<GemmThen<T, WordIsFlag<T>>>(), by_kernels);
  table.add("sum_in_epilogue", algorithm<SumInEpilogue<T>>(), by_kernels);
  table.add("dependent", algorithm<SumInEpilogue<T, Launch::kDependent>>(), by_kernels);
};

}  // namespace
}  // namespace overlap::small_all_reduce

int main(int argc, char** argv) {
  using namespace overlap::small_all_reduce;
  return overlap::dense_chapter_main<overlap::AllReduceProblem, __nv_bfloat16, __half>(
      argc, argv, kExperiment, kVariants);
}
