// Chapter 10: version 2 beside version 1. The same comparisons, without a host synchronisation for each row.
#include "10_sparse_v2_where/where.cuh"

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "09_sparse_v1_nonzero/program.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_where {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "10_sparse_v2_where",
    .summary = "The sum of row-sparse gradients: rows are found one by one, and the host waits for none.",
});

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("v1_nonzero", all_reduce<sparse_nonzero::NonzeroAllReduce<Index, T>>());
  table.add("v2_where", all_reduce<WhereAllReduce<Index, T>>(),
            sparse_nonzero::search_plan("search_by_host"));
};

}  // namespace
}  // namespace overlap::sparse_where

int main(int argc, char** argv) {
  using namespace overlap::sparse_where;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}
