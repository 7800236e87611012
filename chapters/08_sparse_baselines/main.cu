// Chapter 08: two ways to add row-sparse gradients that need no new algorithm: a dense all-reduce, and the
// CPU.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_baselines {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "08_sparse_baselines",
    .summary = "The sum of row-sparse gradients: as a dense table by NCCL, and through the host.",
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {1000, 32, 60}, .duplicates = 6},
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("dense_nccl", all_reduce<DenseAllReduce<Index, T>>(), sparse_plan("dense_sum"));
  table.add("host_gloo", all_reduce<HostAllReduce<Index, T>>());
};

}  // namespace
}  // namespace overlap::sparse_baselines

int main(int argc, char** argv) {
  using namespace overlap::sparse_baselines;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
