// Chapter 09: the first sparse all-reduce. It is right, and nearly all of its time goes into finding rows.
#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "overlap/program/chapter.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "09_sparse_v1_nonzero",
    .summary = "The sum of row-sparse gradients: rows are found one by one, and the host waits for each.",
    .variants = {"v1_nonzero"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 240}, .duplicates = 24},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {64, 8, 12}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
};

void run(const Options& options) {
  run_sparse_chapter(kChapter, options,
                     [](auto& bench) { bench.template add_algorithm<NonzeroAllReduce>("v1_nonzero"); });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
