// Chapter 08: the two ways to add up row-sparse gradients that need no new algorithm, a dense all-reduce and
// the CPU.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_baselines {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "08_sparse_baselines",
    .summary = "The sum of row-sparse gradients: as a dense table by NCCL, and through the host.",
    .variants = {"dense_nccl", "host_gloo"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {1000, 32, 60}, .duplicates = 6},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report, [](auto& bench) {
    bench.template add_algorithm<DenseAllReduce>("dense_nccl");
    bench.template add_algorithm<HostAllReduce>("host_gloo");
  });
}

}  // namespace
}  // namespace overlap::sparse_baselines

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_baselines::kChapter,
                               overlap::sparse_baselines::run);
}
