// Chapter 18: the ring inside of the GEMM kernel, beside the ring outside of it.
#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_in_kernel {
namespace {

const ChapterInfo kChapter = {
    .name = "18_ring_in_kernel",
    .summary = "All-gather, then product, in one kernel that passes A's tiles on while it multiplies them.",
    .variants = {"tma_store", "nccl", "ring_two_streams", "ring_in_kernel", "ring_in_turns", "ring_ahead"},
    .on_virtual_gpus = {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .gpus = 3, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 72}, .per_gpu = {24, 32, 0}, .gpus = 3, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

void run(const Options& options, Report& report) {
  require_all_sizes(options.shape, options.gpus);
  run_dense_chapter<GatherProblem, __half, __nv_bfloat16>(
      options, report, []<SixteenBit T>(DenseBench& bench, GatherProblem<T>& problem) {
        bench.add_product<TensorCoreGemm<T, StoredByTma<>>>("tma_store", problem);
        bench.add_algorithm<gather_then_multiply::GatherThenMultiply<T>>("nccl", problem);
        bench.add_algorithm<two_streams::RingTwoStreams<T>>("ring_two_streams", problem);
        bench.add_algorithm<RingInKernel<T>>("ring_in_kernel", problem);
        bench.add_algorithm<RingInKernel<T>>("ring_in_turns", problem, Tuning{});
        bench.add_algorithm<Fitting<RingAhead<T>>>("ring_ahead", problem);
      });
}

}  // namespace
}  // namespace overlap::ring_in_kernel

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::ring_in_kernel::kChapter, overlap::ring_in_kernel::run);
}
