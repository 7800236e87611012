// Chapter 20: ranks in nodes. The two-level gather beside the flat ones of chapters 03 (a ring) and 17,
// beside all-gather then GEMM, and beside the same kernel without waits.
#include <cstdio>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "20_two_nodes/two_level_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::two_nodes {
namespace {

const ChapterInfo kChapter = {
    .name = "20_two_nodes",
    .summary = "All-gather and GEMM in one kernel on several nodes: NCCL along rails, copy engines inside.",
    .on_virtual_gpus =
        {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .growing_to = 4, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 56}, .per_gpu = {35, 64, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16},
    .has_nodes = true,
};

/// The planner's numbers for the transfers along the rails.
template <SixteenBit T>
Results::Fields rail_numbers(const DenseCall& call) {
  constexpr int kMany = 1024;  // multiprocessors, of which NCCL gets one in so many
  const Cost rail = TwoLevelGemm<T>::rail_cost(call.whole, call.ranks, 0, call.gpus_per_node);
  return {{"rail_messages", rail.messages},
          {"rail_bytes", rail.bytes_out},
          {"rail_share", kMany / rail_blocks(kMany)}};
}

constexpr auto kVariants = []<SixteenBit T>(DenseTable<GatherProblem<T>>& table) {
  using tensor_core_gemm::TensorCoreGemm, tensor_core_gemm::StoredByTma;
  const int per_node = table.options().gpus_per_node;
  table.add("kernel_only", product<TensorCoreGemm<T, StoredByTma<>>>());
  table.add("gather_then_multiply", algorithm<gather_then_multiply::GatherThenMultiply<T>>());
  table.add("flat_ring", algorithm<ring_all_gather::RingAllGatherMatmul<T>>());
  table.add("flat", algorithm<gemm_on_signals::GemmOnSignals<T>>());
  table.add("two_level", algorithm<TwoLevelGemm<T>>(per_node),
            tensor_core_gemm::tile_plan("two_level", rail_numbers<T>).up_to(kMaxRanks));
  const auto gather = [](auto& gemm, auto& data, cudaStream_t stream) { gemm.gather(data.a(), stream); };
  table.add("communication_only", part<TwoLevelGemm<T>>(Role::kCommunication, gather, per_node));
};

void before(const Options& options, Report&) {
  tensor_core_gemm::require_all_sizes(options.shape, options.gpus);
  if (options.is_root())
    std::printf("Nodes: %d, GPUs in each: %d\n", options.gpus / options.gpus_per_node, options.gpus_per_node);
}

}  // namespace
}  // namespace overlap::two_nodes

int main(int argc, char** argv) {
  using namespace overlap::two_nodes;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half, __nv_bfloat16>(
      argc, argv, kChapter, kVariants, {.before = before});
}
