// Chapter 04: the first push, and the ring by copy engine and signals.
#include <iostream>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/first_push.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::copy_engine {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "04_copy_engine",
    .summary = "All-gather and GEMM: copy engines push shards round a ring while they are multiplied.",
});

constexpr const char* kFirstPush = "first_push";

/// Two ranks, bare: two messages by push, two by pull.
void show_first_push(const Options& options) {
  if (options.gpus < 2) throw Skip("it takes two ranks");
  run_ranks(2, [&](Rank& rank) {
    FirstPush contact(rank, 10000);
    for (const int number : {1, 2}) {
      contact.push(number);
      require_right(contact.compare(number, options.corrupt), "first_push, pushed");
      rank.barrier();  // both have read; a push does not wait for that
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

constexpr auto kVariants = []<Floating T>(DenseTable<GatherProblem<T>>& table) {
  table.add_own(kFirstPush);
  table.add("split_only", product<SplitOnly<T>>());
  table.add("copy_engine_ring", algorithm<CopyEngineRing<T>>(), dense_plan("copy_ring"));
  const auto push = [](auto& ring, auto& data, cudaStream_t stream) { ring.run(data.a(), stream); };
  table.add("communication_only", part<RingPush<T>>(Role::kCommunication, push));
};

void before(const Options& options, Report& report) {
  if (options.runs(kFirstPush)) report.run_part(kFirstPush, true, [&] { show_first_push(options); });
}

}  // namespace
}  // namespace overlap::copy_engine

int main(int argc, char** argv) {
  using namespace overlap::copy_engine;
  return overlap::dense_chapter_main<overlap::GatherProblem>(argc, argv, kChapter, kVariants,
                                                             {.before = before});
}
