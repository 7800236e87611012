// Chapter 10 on any GPUs, and with the race detector: calls enqueued one after the other, in some of
// them some ranks have no rows.
#include "10_sparse_v2_where/where.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_where {
namespace {

const bool kOwnership =
    test_ownership("Chapter10", {{"Where", expect_caller_owns_gradients<WhereAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_where
