// Chapter 09: the first sparse all-reduce. It is right, and nearly all of its time goes into finding rows.
#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_nonzero {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "09_sparse_v1_nonzero",
    .summary = "The sum of row-sparse gradients: rows are found one by one, and the host waits for each.",
    .variants = {"v1_nonzero"},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report,
                     [](auto& bench) { bench.template add_algorithm<NonzeroAllReduce>("v1_nonzero"); });
}

}  // namespace
}  // namespace overlap::sparse_nonzero

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_nonzero::kChapter, overlap::sparse_nonzero::run);
}
