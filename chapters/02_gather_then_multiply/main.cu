// Chapter 02: the baseline of all dense chapters, an NCCL all-gather and then a GEMM of cuBLAS.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::gather_then_multiply {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "02_gather_then_multiply",
    .summary = "C = A B, A by rows and B by columns: an all-gather of A, then the GEMM.",
    .has_nccl_modes = true,
});

/// The article's lower bound: P times the GEMM of one shard, and a synchronisation of 6 us between two of
/// them. Rank 0 prints.
void print_lower_bound(const DenseBench& bench) {
  constexpr double kRoundMs = 0.006;
  const int ranks = bench.problem().rank().size();
  const VariantTimes* shard = bench.times_of("one_shard");
  const VariantTimes* best = nullptr;
  for (const NcclMode mode : nccl_modes()) {
    const VariantTimes* times = bench.times_of(variant_of(mode));
    if (times && (!best || times->device_ms.median < best->device_ms.median)) best = times;
  }
  if (bench.problem().rank().id() != 0 || shard == nullptr || best == nullptr) return;
  const double bound = ranks * shard->device_ms.median + (ranks - 1) * kRoundMs;
  std::cout << "\nbaseline: " << best->name << ". Lower bound: " << ranks << " x one_shard + " << ranks - 1
            << " x 6 us = " << fixed(1e3 * bound, 1) << " us; the baseline is at "
            << fixed(100 * bound / best->device_ms.median, 0) << " % of that speed\n";
}

/// The planner's rule: the all-gather, then the GEMM.
Plan<DenseCall> in_turn(NcclMode mode) {
  const Step gather = {"collective", {{"mode", std::string(name_of(mode))}}};
  return {.steps = [=](const DenseCall&) { return std::vector<Step>{gather, {"products"}}; }};
}

constexpr auto kVariants = []<Floating T>(DenseTable<GatherProblem<T>>& table) {
  const std::vector<NcclMode> here = nccl_modes();  // the baseline is the fastest
  for (const NcclMode mode : all_nccl_modes()) {
    const bool runs_here = std::find(here.begin(), here.end(), mode) != here.end();
    table.add(variant_of(mode), algorithm<GatherThenMultiply<T>>(mode), in_turn(mode), runs_here);
  }
  const auto gather = [](auto& algorithm, auto& data, cudaStream_t stream) {
    algorithm.gather(data.a(), stream);
  };
  table.add("communication_only",
            part<GatherThenMultiply<T>>(Role::kCommunication, gather,
                                        table.options().nccl.value_or(NcclMode::kPlain)));
  const auto multiply_shard = [](GatherProblem<T>& problem) -> DenseBench::Enqueue {
    Rank& rank = problem.rank();
    MatmulShape shard = problem.product();
    shard.m = balanced_share(problem.whole().m, rank.size(), rank.id()).size();
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {shard});
    return [&problem, shard](cudaStream_t stream) {
      matmul_row_major(problem.rank().cublas(), stream, shard, problem.a(), problem.b(), problem.c());
    };
  };
  table.add("one_shard", MadeBy{Role::kPart, multiply_shard});
};

}  // namespace
}  // namespace overlap::gather_then_multiply

int main(int argc, char** argv) {
  using namespace overlap::gather_then_multiply;
  return overlap::dense_chapter_main<overlap::GatherProblem>(argc, argv, kChapter, kVariants,
                                                             {.after = print_lower_bound});
}
