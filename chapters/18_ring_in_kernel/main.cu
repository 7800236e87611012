// Chapter 18: the ring inside the GEMM kernel, beside the ring of GEMMs and copies.
#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_in_kernel {
namespace {

const ChapterInfo kChapter = {
    .name = "18_ring_in_kernel",
    .summary = "All-gather, then product, in one kernel that passes A's tiles on while it multiplies them.",
    .on_virtual_gpus =
        {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .growing_to = 4, .gpus = 3, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 72}, .per_gpu = {24, 32, 0}, .gpus = 3, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

constexpr auto kVariants = []<SixteenBit T>(DenseTable<GatherProblem<T>>& table) {
  table.add("tma_store", product<TensorCoreGemm<T, StoredByTma<>>>());
  table.add("nccl", algorithm<gather_then_multiply::GatherThenMultiply<T>>());
  table.add("ring_two_streams", algorithm<two_streams::RingTwoStreams<T>>());
  table.add("ring_in_kernel", algorithm<RingInKernel<T>>(), tile_plan("stepwise").up_to(kMaxRanks));
  table.add("ring_in_turns", algorithm<RingInKernel<T>>(Tuning{}));
  table.add("ring_ahead", algorithm<Fitting<RingAhead<T>>>(), tile_plan("hopping").up_to(kMaxRanks));
};

}  // namespace
}  // namespace overlap::ring_in_kernel

int main(int argc, char** argv) {
  using namespace overlap::ring_in_kernel;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half, __nv_bfloat16>(
      argc, argv, kChapter, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
