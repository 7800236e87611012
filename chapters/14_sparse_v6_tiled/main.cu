// Chapter 14: the search that knows that its lists ascend, beside the one that does not, and what did not
// pay.
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_tiled {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "14_sparse_v6_tiled",
    .summary = "The sum of row-sparse gradients: a search that begins late and ends early.",
    .variants = {"v5_kernel", "v6_ordered", "v6_prefetch", "v6_all_rows", "v6_skip"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {10'000, 4, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report, [](auto& bench) {
    bench.template add_algorithm<sparse_kernel::TileSearchAllReduce>("v5_kernel");
    bench.template add_algorithm<OrderedSearchAllReduce>("v6_ordered");
    bench.template add_algorithm<PrefetchSearchAllReduce>("v6_prefetch");
    bench.template add_algorithm<OrderedSearchAllReduce>("v6_all_rows", kRowsPerBlock, Compare::kAll);
    bench.template add_algorithm<OrderedSearchAllReduce>("v6_skip", kRowsPerBlock, Compare::kUnmatched);
  });
}

}  // namespace
}  // namespace overlap::sparse_tiled

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_tiled::kChapter, overlap::sparse_tiled::run);
}
