// Chapter NN: verified on every element, then timed next to GEMM only.
#include "NN_name/lesson.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::new_chapter {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "NN_name",
    .summary = "C = A B, A by rows and B by columns: broadcasts of A, then the product.",
});

constexpr auto kVariants = []<Floating T>(DenseTable<GatherProblem<T>>& table) {
  table.add("new_chapter", algorithm<NewChapter<T>>());
};

}  // namespace
}  // namespace overlap::new_chapter

int main(int argc, char** argv) {
  using namespace overlap::new_chapter;
  return overlap::dense_chapter_main<overlap::GatherProblem>(argc, argv, kChapter, kVariants);
}
