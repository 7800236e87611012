// Chapter 15: the planner's rules for its variants. Before a run it is not known which ranks share a row: the
// rules assume rows at random, and equally many for each owner.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "09_sparse_v1_nonzero/program.hpp"
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/row_plan.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_beyond {

/// A search in a table of all rows.
template <typename Algorithm>
Plan<SparseSum> table_plan() {
  Plan<SparseSum> plan = sparse_nonzero::search_plan("search_by_table");
  plan.cost = [](const SparseSum& sum) { return Algorithm::cost(sum.call, sum.shape.rows); };
  return plan;
}

/// A plan of rows by all ranks, then a rule. More rows than that no plan has room for.
template <SparseIndex Index>
Plan<SparseSum> row_plan(const SparseSum& sum, const std::string& rule, Results::Fields numbers = {}) {
  const std::int64_t entries = std::max<std::int64_t>(sum.shape.entries, 1);
  return {.steps =
              [=](const SparseSum& of) {
                Step step = {rule, numbers};
                step.numbers.emplace_back("message_bytes",
                                          RowPlan<Index>::message_bytes(of.shape, of.call.ranks));
                return std::vector{step};
              },
          .max_ranks = static_cast<int>(std::min<std::int64_t>((std::int64_t{1} << 30) / entries, 1 << 20))};
}

/// Owners of ranges: each rank has as many rows for each.
template <typename Algorithm, SparseIndex Index>
Plan<SparseSum> ranges_plan(const SparseSum& sum) {
  Plan<SparseSum> plan = row_plan<Index>(sum, "planned_copies");
  plan.max_ranks = std::min(plan.max_ranks, kMaxRanks);
  plan.uncounted = kOnAverage;
  plan.cost = [](const SparseSum& of) {
    const auto ranks = static_cast<std::size_t>(of.call.ranks);
    const std::vector<std::int64_t> of_each(ranks, of.shape.entries / of.call.ranks);
    return Algorithm::cost(of.call, of.shape, std::vector(ranks, of_each));
  };
  return plan;
}

/// Owners among those that have a row, who read one row less for it.
inline OwnedRows among_contributors(const SparseSum& sum) {
  const std::int64_t shared = (sum.call.ranks * sum.shape.entries - sum.call.global) / sum.call.ranks;
  return {.owned = sum.call.global / sum.call.ranks, .pulled = shared, .given = shared};
}
/// Owners wherever a row lives, who have it themselves once in P times.
inline OwnedRows at_home(const SparseSum& sum) {
  const std::int64_t elsewhere = sum.shape.entries - sum.shape.entries / sum.call.ranks;
  return {.owned = sum.call.global / sum.call.ranks, .pulled = elsewhere, .given = elsewhere};
}

/// Owners whose kernels read the memory of others. `narrow`: sums are widened on every rank.
template <typename Algorithm, SparseIndex Index>
Plan<SparseSum> owners_plan(const SparseSum& sum, OwnedRows (*rows)(const SparseSum&),
                            std::string differs = {}, bool narrow = false) {
  Plan<SparseSum> plan = row_plan<Index>(sum, "planned_pulls", {{"widened", std::int64_t{narrow}}});
  plan.max_ranks = std::min(plan.max_ranks, kMaxRanks);
  plan.differs = std::move(differs);
  plan.uncounted = kByKernels;
  plan.cost = [rows](const SparseSum& of) { return Algorithm::cost(of.call, of.shape, rows(of)); };
  return plan;
}

}  // namespace overlap::sparse_beyond
