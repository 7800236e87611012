// Chapter 13 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows; and the search alone, with lists of several tiles.
#include "13_sparse_v5_kernel/tile_search.cuh"

#include <gtest/gtest.h>

#include "sparse_ownership.hpp"
#include "sparse_search_tests.hpp"

namespace overlap::sparse_kernel {
namespace {

const bool kOwnership =
    test_ownership("Chapter13", {{"TileSearch", expect_caller_owns_gradients<TileSearchAllReduce>}});

TEST(TileSearch, FindsEachRowThatIsThereAndNoOther) {
  run_ranks(1, [](Rank& rank) { expect_all_places(rank, kSearchTile, TileSearch()); });
}

}  // namespace
}  // namespace overlap::sparse_kernel
