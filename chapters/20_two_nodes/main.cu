// Chapter 20: ranks in nodes. The two-level gather beside the flat ones of chapters 03 (a ring) and 17,
// beside an all-gather and then the product, and beside the same kernel that waits for nothing.
#include <cstdio>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "20_two_nodes/two_level_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::two_nodes {
namespace {

const ChapterInfo kChapter = {
    .name = "20_two_nodes",
    .summary = "All-gather, then product, in one kernel on several nodes: rails between them, copies inside.",
    .variants = {"kernel_only", "gather_then_multiply", "flat_ring", "flat", "two_level",
                 "communication_only"},
    .on_virtual_gpus = {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 56}, .per_gpu = {35, 64, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16},
    .has_nodes = true,
};

template <SixteenBit T>
void add_variants(DenseBench& bench, GatherProblem<T>& problem, int gpus_per_node) {
  using tensor_core_gemm::TensorCoreGemm, tensor_core_gemm::StoredByTma;
  bench.add_product<TensorCoreGemm<T, StoredByTma<>>>("kernel_only", problem);
  bench.add_algorithm<gather_then_multiply::GatherThenMultiply<T>>("gather_then_multiply", problem);
  bench.add_algorithm<ring_all_gather::RingAllGatherMatmul<T>>("flat_ring", problem);
  bench.add_algorithm<gemm_on_signals::GemmOnSignals<T>>("flat", problem);
  bench.add_algorithm<TwoLevelGemm<T>>("two_level", problem, gpus_per_node);
  const auto gather = [](auto& gemm, auto& data, cudaStream_t stream) { gemm.gather(data.a(), stream); };
  bench.add_part<TwoLevelGemm<T>>("communication_only", Role::kCommunication, problem, gather, gpus_per_node);
}

void run(const Options& options, Report& report) {
  tensor_core_gemm::require_all_sizes(options.shape, options.gpus);
  if (options.tells())
    std::printf("Nodes: %d, GPUs in each: %d\n", options.gpus / options.gpus_per_node, options.gpus_per_node);
  run_dense_chapter<GatherProblem, __half, __nv_bfloat16>(
      options, report, [&]<SixteenBit T>(DenseBench& bench, GatherProblem<T>& problem) {
        add_variants(bench, problem, options.gpus_per_node);
      });
}

}  // namespace
}  // namespace overlap::two_nodes

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::two_nodes::kChapter, overlap::two_nodes::run);
}
