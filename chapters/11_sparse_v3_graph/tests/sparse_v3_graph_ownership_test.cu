// Chapter 11 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "11_sparse_v3_graph/graph.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_graph {
namespace {

const bool kOwnership =
    test_ownership("Chapter11", {{"Graph", expect_caller_owns_gradients<GraphAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_graph
