// Chapter 12: version 4 beside the loops of versions 2 and 3, and beside the dense all-reduce, which it is
// the first one to overtake.
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "10_sparse_v2_where/where.cuh"
#include "11_sparse_v3_graph/graph.cuh"
#include "overlap/program/chapter.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "12_sparse_v4_broadcast_eq",
    .summary = "The sum of row-sparse gradients: all rows are found at once, by a matrix of comparisons.",
    .variants = {"dense_nccl", "v2_where", "v3_graph", "v4_broadcast_eq"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 60}, .duplicates = 6},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {64, 8, 12}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
};

void run(const Options& options) {
  run_sparse_chapter(kChapter, options, [](auto& bench) {
    bench.template add_algorithm<DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<WhereAllReduce>("v2_where");
    bench.template add_algorithm<GraphAllReduce>("v3_graph");
    bench.template add_algorithm<BroadcastEqAllReduce>("v4_broadcast_eq");
  });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
