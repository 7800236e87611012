// Chapter 14: the search in ascending lists beside version 5's, and two variants that do not pay.
#include "09_sparse_v1_nonzero/program.hpp"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_tiled {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "14_sparse_v6_tiled",
    .summary = "The sum of row-sparse gradients: a search that begins late and ends early.",
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {10'000, 4, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("v5_kernel", all_reduce<sparse_kernel::TileSearchAllReduce<Index, T>>());
  table.add("v6_ordered", all_reduce<OrderedSearchAllReduce<Index, T>>(),
            sparse_nonzero::search_plan("search_by_kernel"));
  table.add("v6_prefetch", all_reduce<PrefetchSearchAllReduce<Index, T>>());
  table.add("v6_all_rows", all_reduce<OrderedSearchAllReduce<Index, T>>(kRowsPerBlock, Compare::kAll));
  table.add("v6_skip", all_reduce<OrderedSearchAllReduce<Index, T>>(kRowsPerBlock, Compare::kUnmatched));
};

}  // namespace
}  // namespace overlap::sparse_tiled

int main(int argc, char** argv) {
  using namespace overlap::sparse_tiled;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
