// What --list and --cost print of a chapter's table of variants: names, roles, cost cards, and how the parts
// of a call follow each other. No GPU is touched for it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "overlap/bench/bench.hpp"
#include "overlap/bench/results.hpp"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap {

struct ChapterInfo;
struct Options;

/// A part of a call, for the planner: the name of a rule in tools/results/plan_rules.py, and the numbers that
/// the rule needs beyond the call's sizes and its cost card.
struct Step {
  std::string rule;
  Results::Fields numbers = {};
};

/// Plan::uncounted: the kernels move the rest of the bytes by loads and stores, which nobody counts.
inline constexpr const char* kByKernels = "loads and stores of kernels";
/// Plan::uncounted: the card is that of rows that are drawn, on average.
inline constexpr const char* kOnAverage = "rows as they are drawn";

/// How ./lab plan predicts a variant of a Call.
template <typename Call>
struct Plan {
  /// The parts of a call, one behind the other. Empty: no prediction, or that of the chapter that it comes
  /// from.
  std::function<std::vector<Step>(const Call& call)> steps = {};
  int max_ranks = 0;         ///< that the kernel takes; 0: any. With more there is no cost card
  std::string differs = {};  ///< how its result is another one than the others'; then it never wins
  /// Why virtual GPUs count other bytes than the cost card says: kByKernels or kOnAverage; empty: they count
  /// the same.
  std::string uncounted = {};
  /// The cost card, if the class's own cost() needs more arguments than the call has.
  std::function<Cost(const Call& call)> cost = {};

  /// The same for so many ranks at most.
  Plan up_to(int ranks) const {
    Plan plan = *this;
    plan.max_ranks = ranks;
    return plan;
  }
};

/// The sizes of a dense call. Costs are those of rank 0, to which balanced_share() gives the largest shares.
struct DenseCall {
  MatmulShape whole = {};
  int ranks = 1;
  int gpus_per_node = 1;  ///< of a chapter whose ranks are in nodes
};
/// A plan of one step, whose numbers do not depend on the call.
Plan<DenseCall> dense_plan(std::string rule, Results::Fields numbers = {});

/// The same of a sum of sparse gradients. `shape.entries` are the different rows of each rank.
struct SparseSum {
  SparseShape shape = {};
  SparseCall call = {};
};
/// What --cost asks of a chapter on sparse gradients.
SparseSum sum_of(const Options& options);

/// See dense_plan().
Plan<SparseSum> sparse_plan(std::string rule, Results::Fields numbers = {});

/// A row of a chapter's table, without what makes the variant.
struct VariantCard {
  std::string name;
  Role role = Role::kAlgorithm;
  bool runs_here =
      true;  ///< false: this program was built without what it needs; then --list does not name it
  bool by_program = false;  ///< it is no variant of the bench
  int max_ranks = 0;        ///< see Plan
  std::string differs = {}, uncounted = {};
  std::function<std::optional<Cost>()> cost = {};  ///< none: the class has no cost()
  std::function<std::vector<Step>()> steps = {};
};

/// The row of a variant whose class has no cost().
template <typename Call>
VariantCard card_of(const std::string& name, Role role, const Plan<Call>& plan, const Call& call) {
  VariantCard card = {.name = name,
                      .role = role,
                      .max_ranks = plan.max_ranks,
                      .differs = plan.differs,
                      .uncounted = plan.uncounted};
  card.cost = [plan, call]() { return plan.cost ? std::optional(plan.cost(call)) : std::nullopt; };
  card.steps = [plan, call]() { return plan.steps ? plan.steps(call) : std::vector<Step>{}; };
  return card;
}

/// A chapter's table for one call.
struct CostCards {
  std::vector<MatmulShape> products = {};  ///< of the rank, one behind the other; none of a sparse chapter
  std::vector<VariantCard> variants = {};

  /// What --list prints.
  std::vector<std::string> names() const;
  /// True if the bench has none of these.
  bool all_by_program(const std::vector<std::string>& chosen) const;
};

/// How many different rows all ranks have, if each has its own at random.
std::int64_t expected_global_rows(SparseShape shape, int ranks);

/// The JSON of --cost.
void print_costs(std::ostream& out, const ChapterInfo& chapter, const Options& options);

}  // namespace overlap
