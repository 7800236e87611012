// Chapter 03: the ring by NCCL, verified on every element, then timed beside its GEMMs alone and its
// transfers alone.
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_all_gather {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "03_ring_all_gather",
    .summary = "C = A B: each GPU multiplies a shard of A while the next one moves along a ring of GPUs.",
});

constexpr auto kVariants = []<Floating T>(DenseTable<GatherProblem<T>>& table) {
  table.add("ring", algorithm<RingAllGatherMatmul<T>>(), dense_plan("nccl_ring"));
  table.add("split_only", product<SplitOnly<T>>());
  const auto communicate = [](auto& ring, auto& data, cudaStream_t stream) {
    ring.communicate(data.a(), stream);
  };
  table.add("communication_only", part<RingAllGatherMatmul<T>>(Role::kCommunication, communicate));
};

}  // namespace
}  // namespace overlap::ring_all_gather

int main(int argc, char** argv) {
  using namespace overlap::ring_all_gather;
  return overlap::dense_chapter_main<overlap::GatherProblem>(
      argc, argv, kChapter, kVariants,
      {.after = [](const overlap::DenseBench& bench) { bench.print_exposed("ring"); }});
}
