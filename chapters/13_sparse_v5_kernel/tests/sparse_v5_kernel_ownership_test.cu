// Chapter 13 on any GPUs, and with the race detector: calls enqueued one after the other, in some of
// them some ranks have no rows.
#include "13_sparse_v5_kernel/tile_search.cuh"

#include <gtest/gtest.h>

#include "sparse_ownership.hpp"

namespace overlap::sparse_kernel {
namespace {

const bool kOwnership =
    test_ownership("Chapter13", {{"TileSearch", expect_caller_owns_gradients<TileSearchAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_kernel
