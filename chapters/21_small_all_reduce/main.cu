// Chapter 21: a GEMM of few rows whose k is split over the ranks, and six all-reduces of its result: NCCL's,
// and kernels with few trips.
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/program/dense_chapter.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

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

/// The GEMM, then the all-reduce: `trips` over the link, one after the other. A signal, a read and data that
/// carry their flag are one each; a fence behind a push is half of one. A rank sends at most `most_bytes`.
template <typename AllReduce, Floating T>
void add(DenseTable<AllReduceProblem<T>>& table, const std::string& name, int trips,
         std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max()) {
  const auto steps = [=](const DenseCall& call) {
    const std::int64_t sent = (call.ranks - 1) * call.whole.m * call.whole.n * std::int64_t{sizeof(T)};
    if (sent > most_bytes) return std::vector<Step>{};
    return std::vector<Step>{{"products"}, {"trips", {{"trips", trips}}}};
  };
  const Plan<DenseCall> plan = {.steps = steps, .uncounted = kByKernels};
  table.add(name, algorithm<GemmThen<T, AllReduce>>(), plan.up_to(kMaxRanks));
}

constexpr auto kVariants = []<Floating T>(DenseTable<AllReduceProblem<T>>& table) {
  const auto steps = [](const DenseCall&) { return std::vector<Step>{{"products"}, {"collective"}}; };
  table.add("nccl", algorithm<GemmThen<T, NcclAllReduce<T>>>(), {.steps = steps});
  add<OneShot<T, Reuse::kExitBarrier>>(table, "one_shot_with_exit", 3);
  add<OneShot<T, Reuse::kTwoSets>>(table, "one_shot", 2);
  add<TwoShot<T>>(table, "two_shot", 3);
  add<FlagInData<T>>(table, "flag_in_data", 1, kMaxFlaggedBytes);
  add<WordIsFlag<T>>(table, "word_is_flag", 1, kMaxFlaggedBytes);
};

}  // namespace
}  // namespace overlap::small_all_reduce

int main(int argc, char** argv) {
  using namespace overlap::small_all_reduce;
  return overlap::dense_chapter_main<overlap::AllReduceProblem, __nv_bfloat16, __half, float>(
      argc, argv, kChapter, kVariants);
}
