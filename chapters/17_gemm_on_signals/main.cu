// Chapter 17: one kernel that waits for shards, beside the product in pieces, beside an all-gather and then
// the product, and beside the same kernel that waits for nothing.
#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::gemm_on_signals {
namespace {

const ChapterInfo kChapter = {
    .name = "17_gemm_on_signals",
    .summary =
        "All-gather, then product, in one kernel: it waits for each shard of A that copy engines push.",
    .variants = {"kernel_only", "gather_then_multiply", "ring_two_streams", "gemm_on_signals",
                 "communication_only"},
    .on_virtual_gpus = {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 8, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 112}, .per_gpu = {70, 64, 0}, .gpus = 2, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

/// The kernel of this chapter that waits for nothing is chapter 16's; see Fitting.
template <SixteenBit T>
struct KernelAlone {
  template <typename Tile>
  using WithTile = tensor_core_gemm::TensorCoreGemm<T, tensor_core_gemm::StoredByTma<Tile>>;
};

template <SixteenBit T>
void add_variants(DenseBench& bench, GatherProblem<T>& problem) {
  using tensor_core_gemm::Fitting;
  bench.add_product<Fitting<KernelAlone<T>>>("kernel_only", problem);
  bench.add_algorithm<gather_then_multiply::GatherThenMultiply<T>>("gather_then_multiply", problem);
  bench.add_algorithm<two_streams::RingTwoStreams<T>>("ring_two_streams", problem);
  bench.add_algorithm<Fitting<GemmOnSignals<T>>>("gemm_on_signals", problem);
  const auto gather = [](auto& gemm, auto& data, cudaStream_t stream) { gemm.gather(data.a(), stream); };
  bench.add_part<GemmOnSignals<T>>("communication_only", Role::kCommunication, problem, gather);
}

void run(const Options& options, Report& report) {
  tensor_core_gemm::require_all_sizes(options.shape, options.gpus);
  run_dense_chapter<GatherProblem, __half, __nv_bfloat16>(
      options, report,
      []<SixteenBit T>(DenseBench& bench, GatherProblem<T>& problem) { add_variants(bench, problem); });
}

}  // namespace
}  // namespace overlap::gemm_on_signals

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::gemm_on_signals::kChapter, overlap::gemm_on_signals::run);
}
