// Chapter 12: version 4 beside the loops of versions 2 and 3, and beside the dense all-reduce.
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "09_sparse_v1_nonzero/program.hpp"
#include "10_sparse_v2_where/where.cuh"
#include "11_sparse_v3_graph/graph.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_broadcast_eq {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "12_sparse_v4_broadcast_eq",
    .summary = "The sum of row-sparse gradients: all rows are found at once, by a matrix of comparisons.",
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 60}, .duplicates = 6},
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("dense_nccl", all_reduce<sparse_baselines::DenseAllReduce<Index, T>>());
  table.add("v2_where", all_reduce<sparse_where::WhereAllReduce<Index, T>>());
  table.add("v3_graph", all_reduce<sparse_graph::GraphAllReduce<Index, T>>());
  table.add("v4_broadcast_eq", all_reduce<BroadcastEqAllReduce<Index, T>>(),
            sparse_nonzero::search_plan("search_by_matrix"));
};

}  // namespace
}  // namespace overlap::sparse_broadcast_eq

int main(int argc, char** argv) {
  using namespace overlap::sparse_broadcast_eq;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
