// Chapter 14 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_tiled {
namespace {

const bool kOwnership =
    test_ownership("Chapter14", {{"OrderedSearch", expect_caller_owns_gradients<OrderedSearchAllReduce>},
                                 {"PrefetchSearch", expect_caller_owns_gradients<PrefetchSearchAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_tiled
