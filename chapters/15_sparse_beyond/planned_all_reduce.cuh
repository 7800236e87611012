// Chapter 15: a sparse all-reduce on a plan. The remaining choice is where each row is summed: all rows by
// NCCL, in a dense all-reduce of rows that are mostly zeros on each rank (as in versions 1 to 6); or each row
// on one owner, to which only the ranks send that have it.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <concepts>
#include <cstdint>
#include <vector>

#include "08_sparse_baselines/agreement.cuh"
#include "08_sparse_baselines/coalesce.cuh"
#include "09_sparse_v1_nonzero/ranks_agree.cuh"
#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "15_sparse_beyond/own_rows.cuh"
#include "15_sparse_beyond/row_plan.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::sparse_beyond {

/// Parameters of the cost of a call on a plan, for one rank.
using sparse_nonzero::SparseCall;

/// A way to add up: it is made for a rank, a shape and room for that many rows of a rank and of all.
///  - local_sums(): device memory for the rank's own rows, [room of a rank][F]; or
///    sum_given(own, plan, stream): enqueues the sums of those own rows that another rank reads. add() adds
///    the other ones up from `own`.
///  - plan_more(plan, stream), if it has one: enqueues what it wants to know beside the plan's counts, and
///    copies it to the host.
///  - add(plan, stream): enqueues all that can be before the host knows the counts.
///  - finish(plan, counts, stream): enqueues the rest. Returns the result.
///  - fetch(plan, stream), if it has one: enqueues what comes behind the sums, and is timed by itself.
///  - keeps(row) or kOwnRowsOnly, if a rank's result has not all rows: see SparsePromise.
template <typename Way, typename Index, typename T>
concept WayToAdd = requires(Way way, RowPlan<Index>& plan, const PlanCounts& counts, cudaStream_t stream) {
  way.add(plan, stream);
  { way.finish(plan, counts, stream) } -> std::same_as<SparseRows<Index, T>>;
};

/// The sum over all ranks of a row-sparse gradient, on every rank, without the rows that no rank has.
template <SparseIndex Index, Floating T, template <SparseIndex, Floating> class Way>
class PlannedAllReduce {
  static_assert(WayToAdd<Way<Index, T>, Index, T>);

 public:
  /// The relative error of a rounding to the type in which the way's rows travel; 0: they travel as they are.
  static constexpr double kWireRoundoff = [] {
    if constexpr (requires { Way<Index, T>::kWireRoundoff; }) {
      return Way<Index, T>::kWireRoundoff;
    } else {
      return 0.0;
    }
  }();

  /// Whether a rank's result has only its own rows.
  static constexpr bool kOwnRowsOnly = requires { requires Way<Index, T>::kOwnRowsOnly; };

  /// For tables of that shape, with room for shape.entries different rows on each rank. Collective. Throws
  /// UsageError as RowPlan::checked() does, and as RowPlan and Way do.
  PlannedAllReduce(Rank& rank, SparseShape shape)
      : rank_(rank),
        shape_(RowPlan<Index>::checked(rank, shape)),
        way_(rank, shape, RowPlan<Index>::room(shape), rank.size() * RowPlan<Index>::room(shape)),
        coalesce_(rank, shape),
        plan_(rank, shape),
        clock_(rank.device()) {}
  PlannedAllReduce(const PlannedAllReduce&) = delete;
  PlannedAllReduce& operator=(const PlannedAllReduce&) = delete;

  /// One call; see SparseAllReduce. The host waits once, for the plan. Throws SparseInputError also if a rank
  /// has more different rows than shape.entries.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    plan(indices, entries, stream);
    return reduce(values, stream);
  }

  // ---- The two halves of a call ---------------------------------------------------------------------------
  /// Finds this rank's rows, then all ranks'. Row numbers are known with the batch, long before its gradient:
  /// so this may run beside the forward pass. Only enqueues, with a barrier of the hosts. Collective.
  void plan(const Index* indices, std::int64_t entries, cudaStream_t stream) {
    sparse_baselines::agree(rank_, sparse_baselines::record_of<Index, T>(shape_, entries, false));
    entries_ = entries;
    just_planned_ = true;
    clock_.start(stream, "coalesce");
    coalesce_.find(indices, entries, stream);
    clock_.next(stream, "plan");
    plan_.build(coalesce_.found_rows(), coalesce_.found(), stream);
    if constexpr (requires { way_.plan_more(plan_, stream); }) way_.plan_more(plan_, stream);
    plan_.publish(stream);
  }
  /// The values of the entries that plan() has seen: each row once on this rank, and once on all. The host
  /// waits for the plan, not for the enqueued work. Collective.
  SparseRows<Index, T> reduce(const T* values, cudaStream_t stream) {
    if (just_planned_) {
      clock_.next(stream, "sum");
    } else {
      clock_.start(stream, "sum");  // another gradient on the same plan
    }
    just_planned_ = false;
    sum_own_rows(values, stream);
    clock_.next(stream, "all_reduce");
    way_.add(plan_, stream);
    waits_.reset();
    const PlanCounts counts = plan_.wait(waits_);
    try {
      plan_.require_room(counts);
      const SparseRows<Index, T> result = way_.finish(plan_, counts, stream);
      if constexpr (requires { way_.fetch(plan_, stream); }) {
        clock_.next(stream, "fetch");
        way_.fetch(plan_, stream);
      }
      clock_.stop(stream);
      counts_ = counts;
      return result;
    } catch (const SparseInputError&) {
      clock_.stop(stream);
      throw;
    }
  }

  /// Which rows a rank's result has, if not all.
  bool keeps(std::int64_t row) const requires requires(const Way<Index, T>& way) { way.keeps(row); }
  { return way_.keeps(row); }

  /// The phases of the last call on this rank. Only after a wait for the stream.
  std::vector<Phase> phases() const { return clock_.read(); }
  /// How often the last call made the host wait for the GPU.
  int host_waits() const { return waits_.count(); }
  /// Rows of this rank without a place in the last call's result: other than 0 is an error of the plan.
  int lost_rows(cudaStream_t stream) { return plan_.lost_rows(counts_, stream); }
  /// The plan of the last call.
  const RowPlan<Index>& last_plan() const { return plan_; }

  /// The cost of a call for a rank; `more`: further arguments of the way to add.
  template <typename... More>
  static Cost cost(const SparseCall& call, SparseShape shape, const More&... more) {
    Cost cost = Way<Index, T>::cost(call, more...);
    const std::int64_t message = RowPlan<Index>::message_bytes(shape, call.ranks);
    cost.bytes_out += (call.ranks - 1) * message;  // by a ring: each passes on what it gets
    cost.bytes_in += (call.ranks - 1) * message;
    cost.host_waits = 1;
    return cost;
  }

 private:
  void sum_own_rows(const T* values, cudaStream_t stream) {
    if constexpr (requires { way_.local_sums(); }) {
      coalesce_.sum(values, entries_, way_.local_sums(), stream);
    } else {
      const OwnEntries<T> own = {rank_.id(), values, coalesce_.sorted_entries(), coalesce_.begins(),
                                 coalesce_.lengths()};
      way_.sum_given(own, plan_, stream);
    }
  }

  Rank& rank_;
  SparseShape shape_;
  Way<Index, T> way_;  // first: it throws if there is no peer access, before anything else is allocated
  sparse_baselines::Coalesce<Index, T> coalesce_;
  RowPlan<Index> plan_;
  PhaseClock clock_;
  sparse_nonzero::HostWaits waits_{rank_};
  bool just_planned_ = false;
  std::int64_t entries_ = 0;
  PlanCounts counts_;  // of the last call
};

// ---- The first way: NCCL ----------------------------------------------------------------------------------

/// values_out[g] = the rank's row where it has the g-th of all, zeros elsewhere. A block loops over rows.
/// Each element is written once: no memset before, no scatter after.
template <Floating T>
__global__ void fill_rows(const T* values, const std::int32_t* places, std::int64_t count,
                          std::int64_t features, T* values_out) {
  for (std::int64_t g = blockIdx.x; g < count; g += gridDim.x) {
    const std::int64_t place = places[g];
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      values_out[g * features + feature] = place < 0 ? T{} : values[place * features + feature];
  }
}

/// A dense all-reduce of G rows.
template <SparseIndex Index, Floating T>
class NcclSum {
 public:
  /// See WayToAdd.
  NcclSum(Rank& rank, SparseShape shape, std::int64_t max_local, std::int64_t /*max_global*/)
      : rank_(rank), shape_(shape), nccl_(rank.nccl()), local_(rank.device(), shape.elements(max_local)) {}

  T* local_sums() const { return local_.data(); }   ///< see WayToAdd
  void add(RowPlan<Index>&, cudaStream_t) const {}  ///< nothing: the all-reduce's size is not known yet
  /// See WayToAdd.
  SparseRows<Index, T> finish(RowPlan<Index>& plan, const PlanCounts& counts, cudaStream_t stream) {
    if (counts.global == 0) return {plan.rows(), nullptr, 0};
    T* sums = sums_.at_least(shape_.elements(counts.global), stream);
    fill_rows<<<blocks_for_rows(counts.global), kBlockThreads, 0, stream>>>(
        local_.data(), plan.places() + rank_.id() * plan.max_global(), counts.global, shape_.features, sums);
    CUDA_CHECK(cudaGetLastError());
    NCCL_CHECK(
        ncclAllReduce(sums, sums, shape_.elements(counts.global), nccl_type<T>(), ncclSum, nccl_, stream));
    return {plan.rows(), sums, counts.global};
  }

  /// A ring's bytes, as in chapter 09.
  static Cost cost(const SparseCall& call) {
    Cost cost = {.launches = call.global > 0 ? 1 : 0};
    if (call.ranks == 1) return cost;
    const auto part = [&](int rank) {
      return balanced_share(call.global * call.features, call.ranks, (rank + call.ranks) % call.ranks).size();
    };
    const std::int64_t all = 2 * call.global * call.features;
    cost.bytes_out = std::int64_t{sizeof(T)} * (all - part(call.rank) - part(call.rank + 1));
    cost.bytes_in = std::int64_t{sizeof(T)} * (all - part(call.rank - 1) - part(call.rank));
    return cost;
  }

 private:
  Rank& rank_;
  SparseShape shape_;
  ncclComm* nccl_;
  DeviceBuffer<T> local_;         // [max_local, F]
  GrowingBuffer<T> sums_{rank_};  // [G, F]
};

/// Version 6 without a search and without rank 0.
template <SparseIndex Index, Floating T>
using BitmapPlanAllReduce = PlannedAllReduce<Index, T, NcclSum>;

}  // namespace overlap::sparse_beyond
