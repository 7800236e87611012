// Chapter 03: the ring by NCCL, verified on every element, then timed beside its products and its transfers
// alone.
#include <iostream>
#include <memory>

#include "03_ring_all_gather/ring_all_gather.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/bench/metrics.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "03_ring_all_gather",
    .summary = "C = A B: the shards of A go round a ring of GPUs and are multiplied on the way.",
    .variants = {"ring", "split_only", "communication_only"},
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

/// The ring's products in the ring's order, from an A that is here already: what it costs to split a product.
template <Floating T>
DenseBench::Enqueue split_only(const GatherProblem<T>& problem) {
  return [&problem](cudaStream_t stream) {
    Rank& rank = problem.rank();
    const auto [m, n, k] = problem.whole();
    for (int step = 0; step < rank.size(); ++step) {
      const int shard = shard_in_step(rank.id(), rank.size(), step);
      const TimelineScope name("step ", step, ": multiply shard ", shard);
      const T* a_shard = problem.whole_a() + balanced_share(m, rank.size(), shard).begin * k;
      multiply_shard(rank, problem.whole(), shard, a_shard, problem.b(), problem.c(), stream);
    }
  };
}

/// The ring's transfers without its products.
template <Floating T>
DenseBench::Enqueue communication_only(const GatherProblem<T>& problem) {
  auto ring = std::make_shared<RingAllGatherMatmul<T>>(problem.rank(), problem.whole());
  return [ring, &problem](cudaStream_t stream) { ring->communicate(problem.a(), stream); };
}

/// Where the time beyond the product alone goes. Rank 0 prints.
void print_exposed(const Rank& rank, const DenseBench& bench) {
  const VariantTimes* const ring = bench.times_of("ring");
  const VariantTimes* const split = bench.times_of("split_only");
  const VariantTimes* const communication = bench.times_of("communication_only");
  if (rank.id() != 0 || rank.size() == 1 || !ring || !split || !communication) return;
  const double alone_ms = bench.times_of("gemm_only")->device_ms.median;
  const double split_ms = split->device_ms.median, ring_ms = ring->device_ms.median;
  std::cout << "\nexposed: " << fixed(1e3 * exposed_ms(split_ms, alone_ms), 1)
            << " us by splitting the product, " << fixed(1e3 * exposed_ms(ring_ms, split_ms), 1)
            << " us by the transfers; "
            << fixed(hidden_percent(ring_ms, split_ms, communication->device_ms.median), 0)
            << " % of the communication is hidden\n";
}

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      GatherProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      bench.add_algorithm<RingAllGatherMatmul<T>>("ring", problem);
      bench.add("split_only", Role::kProduct, [&] { return split_only(problem); });
      bench.add("communication_only", Role::kCommunication, [&] { return communication_only(problem); });
      bench.verify();
      bench.time();
      bench.print();
      print_exposed(rank, bench);
      bench.save(report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
