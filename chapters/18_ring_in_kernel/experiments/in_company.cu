// Experiment of chapter 18: the cost of setting multiprocessors aside for NCCL, and the slow-down of an
// all-reduce and this chapter's or chapter 17's kernel that run at the same time.
#include "18_ring_in_kernel/experiments/in_company.cuh"

#include "16_tensor_core_gemm/program.hpp"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_in_kernel {
namespace {

const ChapterInfo kExperiment = {
    .name = "18_ring_in_kernel/in_company",
    .summary = "Multiprocessors left to NCCL, and an all-reduce beside the kernels of chapters 17 and 18.",
    .on_virtual_gpus = {.shape = {0, 0, 128}, .per_gpu = {256, 1024, 0}, .gpus = 3, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 72}, .per_gpu = {24, 32, 0}, .gpus = 3, .iterations = 1}},
    .types = {ElementType::kF16},
};

constexpr auto kVariants = [](DenseTable<GatherProblem<__half>>& table) {
  using Signals = gemm_on_signals::GemmOnSignals<__half>;
  add_gradients(table, {4, 16});
  table.add("gemm_on_signals", algorithm<Signals>());
  for (const int blocks : {4, 16})
    table.add("gemm_on_signals_beside_" + std::to_string(blocks), algorithm<InCompany<Signals>>(blocks));
  add_in_company<RingAhead<__half>>(table, "ring_ahead", {0, 4, 8, 16}, Tuning{});
};

}  // namespace
}  // namespace overlap::ring_in_kernel

int main(int argc, char** argv) {
  using namespace overlap::ring_in_kernel;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
