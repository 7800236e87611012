// Chapter NN: verified on every element, then timed beside the product alone.
#include "NN_name/lesson.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::new_chapter {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "NN_name",
    .summary = "C = A B, A by rows and B by columns: broadcasts of A, then the product.",
    .variants = {"new_chapter"},
});

void run(const Options& options, Report& report) {
  run_dense_chapter<GatherProblem>(options, report,
                                   []<Floating T>(DenseBench& bench, GatherProblem<T>& problem) {
                                     bench.add_algorithm<NewChapter<T>>("new_chapter", problem);
                                   });
}

}  // namespace
}  // namespace overlap::new_chapter

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::new_chapter::kChapter, overlap::new_chapter::run);
}
