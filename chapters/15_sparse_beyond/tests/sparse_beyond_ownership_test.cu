// Chapter 15 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_beyond {
namespace {

const bool kOwnership = test_ownership(
    "Chapter15", {{"Table", expect_caller_owns_gradients<TableAllReduce>},
                  {"BitmapPlan", expect_caller_owns_gradients<BitmapPlanAllReduce>},
                  {"RangeOwners", expect_caller_owns_gradients<RangeOwnersAllReduce>},
                  {"ContributorOwners", expect_caller_owns_gradients<ContributorOwnersAllReduce>},
                  {"NarrowOwners", expect_caller_owns_gradients<Bf16OwnersAllReduce>},
                  {"ReduceScatter", expect_caller_owns_gradients<ReduceScatter>},
                  {"ReduceScatterFetch", expect_caller_owns_gradients<ReduceScatterFetch>}});

}  // namespace
}  // namespace overlap::sparse_beyond
