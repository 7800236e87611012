// Chapter 05: GEMMs on two alternating streams: the next one fills the last wave of the previous one.
#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::two_streams {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "05_two_streams",
    .summary = "All-gather and GEMM: sub-GEMMs on alternating streams fill each other's last wave.",
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
});

constexpr auto kVariants = []<Floating T>(DenseTable<GatherProblem<T>>& table) {
  table.add("split_only", product<SplitOnly<T>>(2));
  table.add("copy_engine_ring", algorithm<copy_engine::CopyEngineRing<T>>());
  table.add("ring_two_streams", algorithm<RingTwoStreams<T>>(), dense_plan("copy_ring", {{"streams", 2}}));
  table.add("pull_two_streams", algorithm<PullTwoStreams<T>>(), dense_plan("pulls"));
};

}  // namespace
}  // namespace overlap::two_streams

int main(int argc, char** argv) {
  using namespace overlap::two_streams;
  return overlap::dense_chapter_main<overlap::GatherProblem>(argc, argv, kChapter, kVariants);
}
