// Chapter 01: the product on one GPU and on N GPUs, verified on every element, then timed.
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "01_column_split/column_split.cuh"
#include "overlap/bench/host_bench.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/cost_cards.hpp"

namespace overlap::column_split {
namespace {

/// The variants: their names, and on how many GPUs each runs.
std::vector<std::pair<std::string, int>> variants(const Options& options) {
  return {{"one_gpu", 1}, {"all_gpus", options.gpus}};
}

/// The cost card of each: of the GPU with the largest share.
CostCards cost_cards(const Options& options) {
  CostCards cards;
  for (const auto& [name, gpus] : variants(options)) {
    const auto [m, n, k] = options.shape;
    const MatmulShape share = {m, balanced_share(n, gpus, 0).size(), k};
    cards.variants.push_back(card_of<MatmulShape>(name, Role::kAlgorithm, {.cost = cost}, share));
  }
  return cards;
}

const ChapterInfo kChapter = {
    .name = "01_column_split",
    .summary = "C = A B in int, the columns of B split over several GPUs.",
    .table = cost_cards,
    .on_virtual_gpus = {.shape = {512, 1024, 128}, .gpus = 4, .iterations = 3, .warmup = 1},
    .on_real_gpus = {.shape = {4096, 8192, 1024}, .gpus = 16, .iterations = 20, .warmup = 3},
    .on_race_build = {{.shape = {128, 256, 32}, .gpus = 4, .iterations = 1, .warmup = 0}},
    .without_ranks = true,
};

void run(const Options& options, Report& report) {
  const auto [m, n, k] = options.shape;
  std::cout << "C = A B in int32: A " << m << " x " << k << ", B " << k << " x " << n
            << "; columns split over " << gpus_text(options.gpus) << " (" << backend::name() << ")\n";
  HostBench bench(options.shape, options.seed, options);
  bool any = false;
  for (const auto& [name, gpus] : variants(options)) {
    if (any && gpus == 1) continue;  // the same as the first variant
    bench.add_algorithm<ColumnSplitMatmul>(name, gpus);
    any = any || options.runs(name);
  }
  bench.run(report);
}

}  // namespace
}  // namespace overlap::column_split

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::column_split::kChapter, overlap::column_split::run);
}
