// Chapter 01: the product on one GPU and on N GPUs, verified on every element, then timed.
#include <iostream>

#include "01_column_split/column_split.cuh"
#include "overlap/bench/host_bench.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/program/chapter.hpp"

namespace overlap::column_split {
namespace {

const ChapterInfo kChapter = {
    .name = "01_column_split",
    .summary = "C = A B in int, the columns of B split over several GPUs.",
    .variants = {"one_gpu", "all_gpus"},
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
  bench.add_algorithm<ColumnSplitMatmul>("one_gpu", 1);
  const bool is_the_same = options.gpus == 1 && options.runs("one_gpu");  // then it is measured once
  if (!is_the_same) bench.add_algorithm<ColumnSplitMatmul>("all_gpus", options.gpus);
  bench.run(report);
}

}  // namespace
}  // namespace overlap::column_split

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::column_split::kChapter, overlap::column_split::run);
}
