// Chapter 14: the search that knows that its lists ascend, beside the one that does not, and what did not
// pay.
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"
#include "overlap/program/chapter.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "14_sparse_v6_tiled",
    .summary = "The sum of row-sparse gradients: a search that begins late and ends early.",
    .variants = {"v5_kernel", "v6_ordered", "v6_prefetch", "v6_all_rows", "v6_skip"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {10'000, 4, 300}, .duplicates = 20},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
};

void run(const Options& options) {
  run_sparse_chapter(kChapter, options, [](auto& bench) {
    bench.template add_algorithm<TileSearchAllReduce>("v5_kernel");
    bench.template add_algorithm<OrderedSearchAllReduce>("v6_ordered");
    bench.template add_algorithm<PrefetchSearchAllReduce>("v6_prefetch");
    bench.template add_algorithm<OrderedSearchAllReduce>("v6_all_rows", kRowsPerBlock, Compare::kAll);
    bench.template add_algorithm<OrderedSearchAllReduce>("v6_skip", kRowsPerBlock, Compare::kUnmatched);
  });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
