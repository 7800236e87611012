// Chapter 08: the two ways to add up row-sparse gradients that need no new algorithm, a dense all-reduce and
// the CPU.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "overlap/program/chapter.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "08_sparse_baselines",
    .summary = "The sum of row-sparse gradients: as a dense table by NCCL, and through the host.",
    .variants = {"dense_nccl", "host_gloo"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {1000, 32, 60}, .duplicates = 6},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {64, 8, 12}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // the host adds up what ranks on one GPU have, too
};

void run(const Options& options) {
  run_sparse_chapter(kChapter, options, [](auto& bench) {
    bench.template add_algorithm<DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<HostAllReduce>("host_gloo");
  });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
