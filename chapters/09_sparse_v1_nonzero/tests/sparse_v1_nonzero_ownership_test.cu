// Chapter 09 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "09_sparse_v1_nonzero/nonzero.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_nonzero {
namespace {

const bool kOwnership =
    test_ownership("Chapter09", {{"Nonzero", expect_caller_owns_gradients<NonzeroAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_nonzero
