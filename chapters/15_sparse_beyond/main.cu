// Chapter 15: beyond version 6: look-ups instead of the search, a plan that every rank computes, and one
// owner for each row.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/program.hpp"
#include "15_sparse_beyond/range_owners.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_beyond {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "15_sparse_beyond",
    .summary = "The sum of row-sparse gradients: planned by bitmaps, summed by the owner of each row.",
    .on_virtual_gpus =
        {.growing_to = 4, .gpus = 4, .iterations = 1, .sparse = {8'000, 4, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  const SparseSum& sum = table.sum();
  table.add("dense_nccl", all_reduce<sparse_baselines::DenseAllReduce<Index, T>>());
  table.add("v6_ordered", all_reduce<sparse_tiled::OrderedSearchAllReduce<Index, T>>());
  table.add("v6_table", all_reduce<TableAllReduce<Index, T>>(), table_plan<TableAllReduce<Index, T>>());
  table.add("v6_binary", all_reduce<BinaryAllReduce<Index, T>>(),
            sparse_nonzero::search_plan("search_by_halves"));
  table.add("bitmap_plan", all_reduce<BitmapPlanAllReduce<Index, T>>(), row_plan<Index>(sum, "planned_nccl"));
  table.add("range_owners", all_reduce<RangeOwnersAllReduce<Index, T>>(),
            ranges_plan<RangeOwnersAllReduce<Index, T>, Index>(sum));
  table.add("contributor_owners", all_reduce<ContributorOwnersAllReduce<Index, T>>(),
            owners_plan<ContributorOwnersAllReduce<Index, T>, Index>(sum, among_contributors));
  constexpr const char* kNarrow = "sums of values in 16 bits";
  table.add("owners_bf16", all_reduce<Bf16OwnersAllReduce<Index, T>>(),
            owners_plan<Bf16OwnersAllReduce<Index, T>, Index>(sum, among_contributors, kNarrow, true));
  table.add("owners_f16", all_reduce<F16OwnersAllReduce<Index, T>>(),
            owners_plan<F16OwnersAllReduce<Index, T>, Index>(sum, among_contributors, kNarrow, true));
  table.add("reduce_scatter", all_reduce<ReduceScatter<Index, T>>(),
            owners_plan<ReduceScatter<Index, T>, Index>(sum, at_home, "sums stay with their owners"));
  table.add("scatter_fetch", all_reduce<ReduceScatterFetch<Index, T>>(),
            owners_plan<ReduceScatterFetch<Index, T>, Index>(sum, at_home, "a rank gets its own rows only"));
};

}  // namespace
}  // namespace overlap::sparse_beyond

int main(int argc, char** argv) {
  using namespace overlap::sparse_beyond;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
