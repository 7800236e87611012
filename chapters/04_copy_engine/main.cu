// Chapter 04: the ring by copy engine and signals, and what transports cost a product beside them.
#include <memory>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/split_only.cuh"
#include "overlap/chapter.hpp"
#include "overlap/dense_bench.hpp"
#include "overlap/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "04_copy_engine",
    .summary =
        "All-gather, then product: shards pushed round a ring by copy engines while they are multiplied.",
    .variants = {"split_only", "copy_engine_ring", "communication_only"},
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      GatherProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options, kChapter);
      bench.add("split_only", Role::kProduct, [&] {
        auto split = std::make_shared<SplitOnly<T>>(rank, problem.whole());
        return [split, &problem](cudaStream_t stream) {
          split->run(problem.whole_a(), problem.b(), problem.c(), stream);
        };
      });
      bench.add_algorithm<CopyEngineRing<T>>("copy_engine_ring", problem);
      bench.add("communication_only", Role::kCommunication, [&] {
        auto ring = std::make_shared<RingPush<T>>(rank, problem.whole());
        return [ring, &problem](cudaStream_t stream) { ring->run(problem.a(), stream); };
      });
      bench.verify();
      bench.time();
      bench.print();
      bench.save(report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
