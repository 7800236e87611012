// Chapter 04: the first push, and the ring by copy engine and signals.
#include <iostream>
#include <string>
#include <vector>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/first_push.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::copy_engine {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "04_copy_engine",
    .summary =
        "All-gather, then product: shards pushed round a ring by copy engines while they are multiplied.",
    .variants = {"first_push", "split_only", "copy_engine_ring", "communication_only"},
});

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

template <Floating T>
void add_variants(DenseBench& bench, GatherProblem<T>& problem) {
  bench.add_product<SplitOnly<T>>("split_only", problem);
  bench.add_algorithm<CopyEngineRing<T>>("copy_engine_ring", problem);
  const auto push = [](auto& ring, auto& data, cudaStream_t stream) { ring.run(data.a(), stream); };
  bench.add_part<RingPush<T>>("communication_only", Role::kCommunication, problem, push);
}

void run(const Options& options, Report& report) {
  if (options.runs("first_push")) report.run_part("first_push", true, [&] { show_first_push(options); });
  if (options.variants == std::vector<std::string>{"first_push"}) return;
  run_dense_chapter<GatherProblem>(options, report,
                                   [](DenseBench& bench, auto& problem) { add_variants(bench, problem); });
}

}  // namespace
}  // namespace overlap::copy_engine

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::copy_engine::kChapter, overlap::copy_engine::run);
}
