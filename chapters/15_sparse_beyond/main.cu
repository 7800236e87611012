// Chapter 15: what is beyond version 6: its search replaced by look-ups, a plan that every rank makes by
// itself, and rows that go to one owner each.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_beyond {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "15_sparse_beyond",
    .summary = "The sum of row-sparse gradients: planned by bitmaps, added up by one owner of each row.",
    .variants = {"dense_nccl", "v6_ordered", "v6_table", "v6_binary", "bitmap_plan", "range_owners",
                 "contributor_owners", "owners_bf16", "owners_f16", "reduce_scatter", "scatter_fetch"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {8'000, 4, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report, [](auto& bench) {
    bench.template add_algorithm<sparse_baselines::DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<sparse_tiled::OrderedSearchAllReduce>("v6_ordered");
    bench.template add_algorithm<TableAllReduce>("v6_table");
    bench.template add_algorithm<BinaryAllReduce>("v6_binary");
    bench.template add_algorithm<BitmapPlanAllReduce>("bitmap_plan");
    bench.template add_algorithm<RangeOwnersAllReduce>("range_owners");
    bench.template add_algorithm<ContributorOwnersAllReduce>("contributor_owners");
    bench.template add_algorithm<Bf16OwnersAllReduce>("owners_bf16");
    bench.template add_algorithm<F16OwnersAllReduce>("owners_f16");
    bench.template add_algorithm<ReduceScatter>("reduce_scatter");
    bench.template add_algorithm<ReduceScatterFetch>("scatter_fetch");
  });
}

}  // namespace
}  // namespace overlap::sparse_beyond

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_beyond::kChapter, overlap::sparse_beyond::run);
}
