// Chapter 13: the fused search beside the matrix of version 4, and beside the dense all-reduce.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "09_sparse_v1_nonzero/program.hpp"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_kernel {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "13_sparse_v5_kernel",
    .summary = "The sum of row-sparse gradients: one kernel compares and finds, tile by tile.",
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {700, 4, 90}, .duplicates = 3}},
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("dense_nccl", all_reduce<sparse_baselines::DenseAllReduce<Index, T>>());
  table.add("v4_broadcast_eq", all_reduce<sparse_broadcast_eq::BroadcastEqAllReduce<Index, T>>());
  table.add("v5_kernel", all_reduce<TileSearchAllReduce<Index, T>>(),
            sparse_nonzero::search_plan("search_by_kernel"));
};

}  // namespace
}  // namespace overlap::sparse_kernel

int main(int argc, char** argv) {
  using namespace overlap::sparse_kernel;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
