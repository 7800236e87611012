// Experiment of chapter 16: the rung tma_store beside cuBLAS, which chooses its algorithm itself (GEMM only),
// and beside the fastest algorithm that cuBLASLt proposes.
#include "16_tensor_core_gemm/experiments/library_product.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {
namespace {

const ChapterInfo kExperiment = {
    .name = "16_tensor_core_gemm/library",
    .summary = "The rung tma_store beside cuBLAS and the fastest algorithm of cuBLASLt's heuristic.",
    .on_virtual_gpus = {.shape = {512, 512, 512}, .gpus = 1, .iterations = 2, .warmup = 1},
    .on_real_gpus = {.shape = {8192, 8192, 8192}, .gpus = 1, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {130, 136, 112}, .gpus = 1, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

constexpr auto kVariants = []<SixteenBit T>(DenseTable<GatherProblem<T>>& table) {
  table.add("cublaslt", product<LibraryProduct<T>>());
  table.add(StoredByTma<>::kName, product<TensorCoreGemm<T, StoredByTma<>>>());
};

}  // namespace
}  // namespace overlap::tensor_core_gemm

int main(int argc, char** argv) {
  using namespace overlap::tensor_core_gemm;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half, __nv_bfloat16>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
