// Chapter 13: the fused search beside the matrix of version 4, and beside the dense all-reduce.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "overlap/program/chapter.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "13_sparse_v5_kernel",
    .summary = "The sum of row-sparse gradients: one kernel compares and finds, tile by tile.",
    .variants = {"dense_nccl", "v4_broadcast_eq", "v5_kernel"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 300}, .duplicates = 20},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {700, 4, 90}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
};

void run(const Options& options) {
  run_sparse_chapter(kChapter, options, [](auto& bench) {
    bench.template add_algorithm<DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<BroadcastEqAllReduce>("v4_broadcast_eq");
    bench.template add_algorithm<TileSearchAllReduce>("v5_kernel");
  });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
