// Experiment of chapter 14: the searches alone, for each number of rows per block.

#include "14_sparse_v6_tiled/experiments/rows_per_block.cuh"
#include "overlap/program/chapter.hpp"

namespace overlap::sparse_tiled {
namespace {

const ChapterInfo kExperiment = sparse_chapter({
    .name = "14_sparse_v6_tiled/rows_per_block",
    .summary = "The searches of versions 5 and 6 alone, for each number of rows per block.",
    .variants = {"sweep"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {10'000, 4, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
    .types = {ElementType::kF32},
});

void run(const Options& options, Report& report) {
  const SparseOptions& sparse = options.sparse;
  const SparseData data(sparse.shape, options.gpus, sparse.pattern, sparse.duplicates, options.seed);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_sparse(sparse.index, options.type, [&](auto index, auto) {
      sweep_rows_per_block<typename decltype(index)::type>(rank, data, options, {1, 2, 4, 8, 16, 32, 64, 128},
                                                           report);
    });
  });
}

}  // namespace
}  // namespace overlap::sparse_tiled

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_tiled::kExperiment, overlap::sparse_tiled::run);
}
