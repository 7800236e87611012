// Chapter 03: the ring by NCCL, verified on every element, then timed beside its products and its transfers
// alone.
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_all_gather {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "03_ring_all_gather",
    .summary = "C = A B: the shards of A go round a ring of GPUs and are multiplied on the way.",
    .variants = {"ring", "split_only", "communication_only"},
});

template <Floating T>
void add_variants(DenseBench& bench, GatherProblem<T>& problem) {
  bench.add_algorithm<RingAllGatherMatmul<T>>("ring", problem);
  bench.add_product<SplitOnly<T>>("split_only", problem);
  const auto communicate = [](auto& ring, auto& data, cudaStream_t stream) {
    ring.communicate(data.a(), stream);
  };
  bench.add_part<RingAllGatherMatmul<T>>("communication_only", Role::kCommunication, problem, communicate);
}

void run(const Options& options, Report& report) {
  run_dense_chapter<GatherProblem>(
      options, report, [](DenseBench& bench, auto& problem) { add_variants(bench, problem); },
      [](const DenseBench& bench) { bench.print_exposed("ring"); });
}

}  // namespace
}  // namespace overlap::ring_all_gather

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::ring_all_gather::kChapter, overlap::ring_all_gather::run);
}
