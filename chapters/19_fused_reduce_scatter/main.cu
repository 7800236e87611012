// Chapter 19: GEMM and reduce-scatter in one kernel, beside chapter 06's forms and NCCL.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "19_fused_reduce_scatter/product_alone.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

const ChapterInfo kChapter = {
    .name = "19_fused_reduce_scatter",
    .summary = "C = X W, X by columns, W by rows: one kernel multiplies, sends partial tiles and adds them.",
    .on_virtual_gpus =
        {.shape = {512, 512, 0}, .per_gpu = {0, 0, 128}, .gpus = 4, .iterations = 1, .warmup = 1},
    .on_real_gpus =
        {.shape = {4096, 4096, 0}, .per_gpu = {0, 0, 4096}, .gpus = 4, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {70, 72, 0}, .per_gpu = {0, 0, 96}, .gpus = 2, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16, ElementType::kBf16},
};

template <SixteenBit T, typename Wire>
using Fitted = tensor_core_gemm::Fitting<FusedReduceScatter<T, Wire>, product_of_an_owner>;

constexpr auto kVariants = []<SixteenBit T>(DenseTable<ScatterProblem<T>>& table) {
  const Plan<DenseCall> plan = tensor_core_gemm::tile_plan("scattered").up_to(kMaxRanks);
  table.add("nccl", algorithm<reduce_scatter::MultiplyThenScatter<T>>());
  table.add("rotating", algorithm<reduce_scatter::RotatingAccumulators<T>>());
  table.add("all_to_all", algorithm<reduce_scatter::AllToAllSum<T>>());
  table.add(SixteenBitWire::kName, algorithm<Fitted<T, SixteenBitWire>>(), plan);
  table.add(F32Wire::kName, algorithm<Fitted<T, F32Wire>>(), plan);
  const auto multiply = [](auto& product, auto& data, auto stream) {
    product.run(data.a(), data.b(), stream);
  };
  table.add("own_product", part<ProductAlone<T>>(Role::kPart, multiply));
};

}  // namespace
}  // namespace overlap::fused_reduce_scatter

int main(int argc, char** argv) {
  using namespace overlap::fused_reduce_scatter;
  return overlap::dense_chapter_main<overlap::ScatterProblem, __half, __nv_bfloat16>(
      argc, argv, kChapter, kVariants, {.before = [](const overlap::Options& options, overlap::Report&) {
        require_all_sizes(options.shape, options.gpus);
      }});
}
