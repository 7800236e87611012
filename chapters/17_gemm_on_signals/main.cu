// Chapter 17: one kernel that waits for shards, beside the decomposed GEMM, beside all-gather then GEMM, and
// beside the same kernel without waits.
#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::gemm_on_signals {
namespace {

const ChapterInfo kChapter = {
    .name = "17_gemm_on_signals",
    .summary =
        "All-gather, then product, in one kernel: it waits for each shard of A that copy engines push.",
    .on_virtual_gpus =
        {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .growing_to = 4, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 112}, .per_gpu = {70, 64, 0}, .gpus = 2, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

/// Chapter 16's kernel is this chapter's without waits; see Fitting.
template <SixteenBit T>
struct KernelAlone {
  template <typename Tile>
  using WithTile = tensor_core_gemm::TensorCoreGemm<T, tensor_core_gemm::StoredByTma<Tile>>;
};

constexpr auto kVariants = []<SixteenBit T>(DenseTable<GatherProblem<T>>& table) {
  using tensor_core_gemm::Fitting;
  table.add("kernel_only", product<Fitting<KernelAlone<T>>>());
  table.add("gather_then_multiply", algorithm<gather_then_multiply::GatherThenMultiply<T>>());
  table.add("ring_two_streams", algorithm<two_streams::RingTwoStreams<T>>());
  table.add("gemm_on_signals", algorithm<Fitting<GemmOnSignals<T>>>(),
            tensor_core_gemm::tile_plan("persistent").up_to(kMaxRanks));
  const auto gather = [](auto& gemm, auto& data, cudaStream_t stream) { gemm.gather(data.a(), stream); };
  table.add("communication_only", part<GemmOnSignals<T>>(Role::kCommunication, gather));
};

}  // namespace
}  // namespace overlap::gemm_on_signals

int main(int argc, char** argv) {
  using namespace overlap::gemm_on_signals;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half, __nv_bfloat16>(
      argc, argv, kChapter, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
