// Chapter 21: a GEMM of few rows whose k is split over the ranks, and six all-reduces of its result: NCCL's,
// and kernels with few trips.
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::small_all_reduce {
namespace {

const ChapterInfo kChapter = {
    .name = "21_small_all_reduce",
    .summary =
        "C = A B of few rows, whole on every rank: A by columns and B by rows, then a small all-reduce.",
    .on_virtual_gpus = {.shape = {4, 512, 0}, .per_gpu = {0, 0, 64}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {16, 8192, 0}, .per_gpu = {0, 0, 3584}, .gpus = 16, .iterations = 100, .warmup = 10},
    .types = {ElementType::kBf16, ElementType::kF16, ElementType::kF32},
};

/// The GEMM, then the all-reduce. The planner has no rule for small ones: their time does not follow bytes.
template <typename AllReduce, Floating T>
void add(DenseTable<AllReduceProblem<T>>& table, const std::string& name) {
  const Plan<DenseCall> plan = {.uncounted = kByKernels};
  table.add(name, algorithm<GemmThen<T, AllReduce>>(), plan.up_to(kMaxRanks));
}

constexpr auto kVariants = []<Floating T>(DenseTable<AllReduceProblem<T>>& table) {
  table.add("nccl", algorithm<GemmThen<T, NcclAllReduce<T>>>());
  add<OneShot<T, Reuse::kExitBarrier>>(table, "one_shot_with_exit");
  add<OneShot<T, Reuse::kTwoSets>>(table, "one_shot");
  add<TwoShot<T>>(table, "two_shot");
  add<FlagInData<T>>(table, "flag_in_data");
  add<WordIsFlag<T>>(table, "word_is_flag");
};

}  // namespace
}  // namespace overlap::small_all_reduce

int main(int argc, char** argv) {
  using namespace overlap::small_all_reduce;
  return overlap::dense_chapter_main<overlap::AllReduceProblem, __nv_bfloat16, __half, float>(
      argc, argv, kChapter, kVariants);
}
