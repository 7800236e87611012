// Chapter 13: the fused search beside the matrix of version 4, and beside the dense all-reduce.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_kernel {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "13_sparse_v5_kernel",
    .summary = "The sum of row-sparse gradients: one kernel compares and finds, tile by tile.",
    .variants = {"dense_nccl", "v4_broadcast_eq", "v5_kernel"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {700, 4, 90}, .duplicates = 3}},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report, [](auto& bench) {
    bench.template add_algorithm<sparse_baselines::DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<sparse_broadcast_eq::BroadcastEqAllReduce>("v4_broadcast_eq");
    bench.template add_algorithm<TileSearchAllReduce>("v5_kernel");
  });
}

}  // namespace
}  // namespace overlap::sparse_kernel

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_kernel::kChapter, overlap::sparse_kernel::run);
}
