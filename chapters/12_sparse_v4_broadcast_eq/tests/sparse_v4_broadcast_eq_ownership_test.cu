// Chapter 12 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_broadcast_eq {
namespace {

const bool kOwnership =
    test_ownership("Chapter12", {{"BroadcastEq", expect_caller_owns_gradients<BroadcastEqAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_broadcast_eq
