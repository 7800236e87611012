// Chapter 05: products on two alternating streams: the next one fills the last wave of the one before.
#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::two_streams {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "05_two_streams",
    .summary = "All-gather, then product: sub-products on alternating streams fill each other's last wave.",
    .variants = {"split_only", "copy_engine_ring", "ring_two_streams", "pull_two_streams"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
});

void run(const Options& options, Report& report) {
  run_dense_chapter<GatherProblem>(
      options, report, []<Floating T>(DenseBench& bench, GatherProblem<T>& problem) {
        bench.add_product<SplitOnly<T>>("split_only", problem, 2);
        bench.add_algorithm<copy_engine::CopyEngineRing<T>>("copy_engine_ring", problem);
        bench.add_algorithm<RingTwoStreams<T>>("ring_two_streams", problem);
        bench.add_algorithm<PullTwoStreams<T>>("pull_two_streams", problem);
      });
}

}  // namespace
}  // namespace overlap::two_streams

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::two_streams::kChapter, overlap::two_streams::run);
}
