// Chapter 08 on any GPUs, and with the race detector: several calls in a row, in some of which some ranks
// have no rows.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"

#include "sparse_ownership.hpp"

namespace overlap::sparse_baselines {
namespace {

const bool kOwnership = test_ownership("Chapter08", {{"Dense", expect_caller_owns_gradients<DenseAllReduce>},
                                                     {"Host", expect_caller_owns_gradients<HostAllReduce>}});

}  // namespace
}  // namespace overlap::sparse_baselines
