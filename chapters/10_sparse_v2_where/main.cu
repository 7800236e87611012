// Chapter 10: version 2 beside version 1. The same comparisons, without a wait of the host for each row.
#include "10_sparse_v2_where/where.cuh"

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_where {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "10_sparse_v2_where",
    .summary = "The sum of row-sparse gradients: rows are found one by one, and the host waits for none.",
    .variants = {"v1_nonzero", "v2_where"},
});

void run(const Options& options, Report& report) {
  run_sparse_chapter(options, report, [](auto& bench) {
    bench.template add_algorithm<sparse_nonzero::NonzeroAllReduce>("v1_nonzero");
    bench.template add_algorithm<WhereAllReduce>("v2_where");
  });
}

}  // namespace
}  // namespace overlap::sparse_where

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_where::kChapter, overlap::sparse_where::run);
}
