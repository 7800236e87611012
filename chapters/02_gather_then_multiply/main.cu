// Chapter 02: the baseline of all dense chapters, an NCCL all-gather and a product of cuBLAS, one after the
// other.
#include <iostream>
#include <string>
#include <vector>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::gather_then_multiply {
namespace {

std::vector<std::string> variants() {
  std::vector<std::string> names;  // of each mode of NCCL: the baseline is the fastest
  for (const NcclMode mode : nccl_modes()) names.emplace_back(variant_of(mode));
  names.insert(names.end(), {"communication_only", "one_shard"});
  return names;
}

const ChapterInfo kChapter = gather_chapter({
    .name = "02_gather_then_multiply",
    .summary = "C = A B, A by rows and B by columns: an all-gather of A, then the product.",
    .variants = variants(),
    .has_nccl_modes = true,
});

/// The article's lower bound: the product of one shard for each rank, and a synchronisation of 6 us between
/// two of them. Rank 0 prints.
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

template <Floating T>
void add_variants(DenseBench& bench, GatherProblem<T>& problem, const Options& options) {
  for (const NcclMode mode : nccl_modes())
    bench.add_algorithm<GatherThenMultiply<T>>(variant_of(mode), problem, mode);
  const auto gather = [](auto& algorithm, auto& data, cudaStream_t stream) {
    algorithm.gather(data.a(), stream);
  };
  bench.add_part<GatherThenMultiply<T>>("communication_only", Role::kCommunication, problem, gather,
                                        options.nccl.value_or(NcclMode::kPlain));
  bench.add("one_shard", Role::kPart, [&]() -> DenseBench::Enqueue {
    Rank& rank = problem.rank();
    MatmulShape shard = problem.product();
    shard.m = balanced_share(problem.whole().m, rank.size(), rank.id()).size();
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {shard});
    return [&problem, shard](cudaStream_t stream) {
      matmul_row_major(problem.rank().cublas(), stream, shard, problem.a(), problem.b(), problem.c());
    };
  });
}

void run(const Options& options, Report& report) {
  run_dense_chapter<GatherProblem>(
      options, report, [&](DenseBench& bench, auto& problem) { add_variants(bench, problem, options); },
      print_lower_bound);
}

}  // namespace
}  // namespace overlap::gather_then_multiply

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::gather_then_multiply::kChapter,
                               overlap::gather_then_multiply::run);
}
