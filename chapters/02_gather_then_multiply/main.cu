// Chapter 02: the baseline of all dense chapters, an NCCL all-gather and a product of cuBLAS, one after the
// other.
#include <algorithm>
#include <iostream>
#include <memory>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

std::vector<std::string> variants() {
  std::vector<std::string> names;  // of each mode of NCCL: the baseline is the fastest
  for (const NcclMode mode : nccl_modes()) names.emplace_back(variant_of(mode));
  names.insert(names.end(), {"communication_only", "one_shard"});
  return names;
}

const ChapterInfo kChapter = {
    .name = "02_gather_then_multiply",
    .summary = "C = A B, A by rows and B by columns: an all-gather of A, then the product.",
    .variants = variants(),
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
    .has_nccl_modes = true,
};

/// The article's lower bound: the product of one shard for each rank, and a synchronisation of 6 us between
/// two of them.
void print_lower_bound(const DenseBench& bench, int ranks) {
  constexpr double kRoundMs = 0.006;
  const VariantTimes* shard = bench.times_of("one_shard");
  const VariantTimes* best = nullptr;
  for (const NcclMode mode : nccl_modes()) {
    const VariantTimes* times = bench.times_of(variant_of(mode));
    if (times == nullptr) continue;
    if (best == nullptr || times->device_ms.median < best->device_ms.median) best = times;
  }
  if (shard == nullptr || best == nullptr) return;
  const double bound = ranks * shard->device_ms.median + (ranks - 1) * kRoundMs;
  std::cout << "\nbaseline: " << best->name << ". Lower bound: " << ranks << " x one_shard + " << ranks - 1
            << " x 6 us = " << fixed(1e3 * bound, 1) << " us; the baseline is at "
            << fixed(100 * bound / best->device_ms.median, 0) << " % of that speed\n";
}

template <Floating T>
void run_rank(Rank& rank, const Options& options, Report& report) {
  GatherProblem<T> problem(rank, options.shape, options.seed);
  print_shares(problem);
  DenseBench bench(problem, options);
  for (const NcclMode mode : nccl_modes())
    bench.add_algorithm<GatherThenMultiply<T>>(variant_of(mode), problem, mode);
  bench.add("communication_only", Role::kCommunication, [&]() -> DenseBench::Enqueue {
    const NcclMode mode = options.nccl.value_or(NcclMode::kPlain);
    auto algorithm = std::make_shared<GatherThenMultiply<T>>(rank, problem.whole(), mode);
    return [algorithm, &problem](cudaStream_t stream) { algorithm->gather(problem.a(), stream); };
  });
  bench.add("one_shard", Role::kPart, [&]() -> DenseBench::Enqueue {
    MatmulShape shard = problem.product();
    shard.m = balanced_share(problem.whole().m, rank.size(), rank.id()).size();
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {shard});
    return [&problem, shard](cudaStream_t stream) {
      matmul_row_major(problem.rank().cublas(), stream, shard, problem.a(), problem.b(), problem.c());
    };
  });
  bench.verify();
  bench.time();
  bench.print();
  if (rank.id() == 0) print_lower_bound(bench, rank.size());
  bench.save(report);
}

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(
        options.type, [&](auto tag) { run_rank<typename decltype(tag)::type>(rank, options, report); });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
