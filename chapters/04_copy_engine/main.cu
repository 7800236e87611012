// Chapter 04: the first push, and the ring by copy engine and signals.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/first_push.cuh"
#include "04_copy_engine/split_only.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "04_copy_engine",
    .summary =
        "All-gather, then product: shards pushed round a ring by copy engines while they are multiplied.",
    .variants = {"first_push", "split_only", "copy_engine_ring", "communication_only"},
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

/// Two ranks, bare: two messages by push, two by pull.
void show_first_push(const Options& options) {
  if (options.gpus < 2) throw Skip("it takes two ranks");
  run_ranks(2, [&](Rank& rank) {
    FirstPush contact(rank, 10000);
    for (const int number : {1, 2}) {
      contact.push(number);
      require_right(contact.compare(number, options.corrupt), "first_push, pushed");
      rank.barrier();  // both have read: the push itself does not tell
    }
    for (const int number : {3, 4}) {
      contact.pull(number);
      require_right(contact.compare(number), "first_push, pulled");
    }
    rank.barrier();
    if (rank.id() == 0)
      std::cout << "first_push: two messages pushed, two pulled, both ways; all are right\n";
  });
}

/// The problem by several variants, verified and timed.
template <Floating T>
void run_ring(GatherProblem<T>& problem, const Options& options, Report& report) {
  Rank& rank = problem.rank();
  DenseBench bench(problem, options);
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
  bench.run(report);
}

void run(const Options& options) {
  Report report(kChapter, options);
  if (options.runs("first_push")) report.run_part("first_push", true, [&] { show_first_push(options); });
  const auto in_ring = [](const std::string& variant) { return variant != "first_push"; };
  if (std::any_of(options.variants.begin(), options.variants.end(), in_ring)) {
    run_ranks(options.gpus, [&](Rank& rank) {
      visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
        GatherProblem<typename decltype(tag)::type> problem(rank, options.shape, options.seed);
        print_shares(problem);
        run_ring(problem, options, report);
      });
    });
  }
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
