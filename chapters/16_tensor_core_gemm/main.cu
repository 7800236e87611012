// Chapter 16: each rung beside the product of cuBLAS.
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {
namespace {

const ChapterInfo kChapter = {
    .name = "16_tensor_core_gemm",
    .summary = "C = A B by our own kernel: TMA, wgmma, a ring of stages, persistent blocks.",
    .variants = {OneStage::kName, RingOfStages::kName, Specialised<>::kName, Persistent<>::kName,
                 StoredByTma<>::kName, ClusterMulticast<>::kName},
    .on_virtual_gpus = {.shape = {512, 512, 512}, .gpus = 1, .iterations = 2, .warmup = 1},
    .on_real_gpus = {.shape = {8192, 8192, 8192}, .gpus = 1, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {130, 136, 112}, .gpus = 1, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

/// Each rung is an algorithm of its own; all of A is here before it begins.
template <typename T, typename... Rungs>
void add_rungs(DenseBench& bench, GatherProblem<T>& problem) {
  const auto run = [](auto& gemm, auto& data, cudaStream_t stream) {
    gemm.run(data.whole_a(), data.b(), data.c(), stream);
  };
  (bench.add_part<TensorCoreGemm<T, Rungs>>(Rungs::kName, Role::kAlgorithm, problem, run), ...);
}

void run(const Options& options, Report& report) {
  require_all_sizes(options.shape, options.gpus);
  run_dense_chapter<GatherProblem, __half, __nv_bfloat16>(
      options, report, []<SixteenBit T>(DenseBench& bench, GatherProblem<T>& problem) {
        add_rungs<T, OneStage, RingOfStages, Specialised<>, Persistent<>, StoredByTma<>, ClusterMulticast<>>(
            bench, problem);
      });
}

}  // namespace
}  // namespace overlap::tensor_core_gemm

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::tensor_core_gemm::kChapter,
                               overlap::tensor_core_gemm::run);
}
