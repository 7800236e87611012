// Experiment of chapter 15: a training step whose sparse exchange is planned in the forward pass, and made in
// chunks under the backward pass. How much of its time stays exposed?
#include "15_sparse_beyond/experiments/ahead_bench.cuh"
#include "overlap/program/chapter.hpp"

namespace overlap::sparse_beyond {
namespace {

const ChapterInfo kExperiment = sparse_chapter({
    .name = "15_sparse_beyond/ahead",
    .summary = "The exchange planned in the forward pass, and made in chunks under the backward pass.",
    .variants = {"passes", "exchange", "after", "ahead", "in_chunks"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {8'000, 64, 300}, .duplicates = 20},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {1500, 2, 100}, .duplicates = 3}},
    .types = {ElementType::kF32},
});

void run(const Options& options, Report& report) {
  const SparseOptions& sparse = options.sparse;
  const SparseData data(sparse.shape, options.gpus, sparse.pattern, sparse.duplicates, options.seed);
  if (options.check) require_exact_sums(data, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_sparse(sparse.index, options.type, [&](auto index, auto) {
      AheadBench<typename decltype(index)::type> bench(rank, data, options, sparse.pattern);
      bench.run(report);
    });
  });
}

}  // namespace
}  // namespace overlap::sparse_beyond

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_beyond::kExperiment, overlap::sparse_beyond::run);
}
