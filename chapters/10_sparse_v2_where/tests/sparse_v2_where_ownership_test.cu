// Chapter 10 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "10_sparse_v2_where/where.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_where {
namespace {

const bool kOwnership =
    test_ownership("Chapter10", {{"Where", expect_caller_owns_gradients<WhereAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_where
