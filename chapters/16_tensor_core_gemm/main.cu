// Chapter 16: each rung beside the GEMM of cuBLAS.
#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {
namespace {

const ChapterInfo kChapter = {
    .name = "16_tensor_core_gemm",
    .summary = "C = A B by our own kernel: TMA, wgmma, a ring of stages, persistent blocks.",
    .on_virtual_gpus = {.shape = {512, 0, 512},
                        .per_gpu = {0, 512, 0},
                        .growing_to = 2,
                        .gpus = 1,
                        .iterations = 1,
                        .warmup = 1},
    .on_real_gpus =
        {.shape = {8192, 0, 8192}, .per_gpu = {0, 8192, 0}, .gpus = 1, .iterations = 30, .warmup = 5},
    .on_race_build =
        {{.shape = {130, 0, 112}, .per_gpu = {0, 136, 0}, .gpus = 1, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

constexpr auto run_gemm = [](auto& gemm, auto& data, cudaStream_t stream) {
  gemm.run(data.whole_a(), data.b(), data.c(), stream);
};

/// Each rung is an algorithm of its own. The planner predicts only tma_store: it models neither what makes
/// the earlier kernels slower, nor a split of k.
template <typename T, typename... Rungs>
void add_rungs(DenseTable<GatherProblem<T>>& table) {
  const auto plan = []<typename Rung>(Rung) {
    return std::same_as<Rung, StoredByTma<>> ? tile_plan("products") : Plan<DenseCall>{};
  };
  (table.add(Rungs::kName, part<TensorCoreGemm<T, Rungs>>(Role::kAlgorithm, run_gemm), plan(Rungs{})), ...);
}

constexpr auto kVariants = []<SixteenBit T>(DenseTable<GatherProblem<T>>& table) {
  add_rungs<T, WithoutTma, OneStage, RingOfStages, Specialised<>, LargerTile, Persistent<>, StoredByTma<>>(
      table);
  table.add(FittingGemm<T>::kName, part<FittingGemm<T>>(Role::kAlgorithm, run_gemm));
};

}  // namespace
}  // namespace overlap::tensor_core_gemm

int main(int argc, char** argv) {
  using namespace overlap::tensor_core_gemm;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half, __nv_bfloat16>(
      argc, argv, kChapter, kVariants, {.before = require_sizes_of});
}
