// Chapter 09: the first sparse all-reduce. It spends nearly all of its time on the search for rows.
#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "09_sparse_v1_nonzero/program.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_nonzero {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "09_sparse_v1_nonzero",
    .summary = "The sum of row-sparse gradients: rows are found one by one, and the host waits for each.",
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("v1_nonzero", all_reduce<NonzeroAllReduce<Index, T>>(), search_plan("search_by_host"));
};

}  // namespace
}  // namespace overlap::sparse_nonzero

int main(int argc, char** argv) {
  using namespace overlap::sparse_nonzero;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
