// Chapter 12: version 4 beside the loops of versions 2 and 3, and beside the dense all-reduce.
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "10_sparse_v2_where/where.cuh"
#include "11_sparse_v3_graph/graph.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_broadcast_eq {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "12_sparse_v4_broadcast_eq",
    .summary = "The sum of row-sparse gradients: all rows are found at once, by a matrix of comparisons.",
    .variants = {"dense_nccl", "v2_where", "v3_graph", "v4_broadcast_eq"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 60}, .duplicates = 6},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report, [](auto& bench) {
    bench.template add_algorithm<sparse_baselines::DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<sparse_where::WhereAllReduce>("v2_where");
    bench.template add_algorithm<sparse_graph::GraphAllReduce>("v3_graph");
    bench.template add_algorithm<BroadcastEqAllReduce>("v4_broadcast_eq");
  });
}

}  // namespace
}  // namespace overlap::sparse_broadcast_eq

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_broadcast_eq::kChapter,
                               overlap::sparse_broadcast_eq::run);
}
