// The frame of the programs on dense products.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/cost_cards.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// The one table of a program's variants: name, how it is made, how it is predicted. What makes a variant
/// knows its role and its cost card.
template <typename Problem>
class DenseTable {
 public:
  /// For a call of these options. --list gives none: then only names and roles are asked for.
  explicit DenseTable(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }  ///< of the call

  /// Adds a variant. `made`: algorithm(), product(), part() or a MadeBy. `runs_here`: see VariantCard.
  template <typename Made>
  void add(const std::string& name, const Made& made, const Plan<DenseCall>& plan = {},
           bool runs_here = true) {
    const DenseCall call = {options_.shape, options_.gpus, options_.gpus_per_node};
    VariantCard card = card_of(name, made.role, plan, call);
    card.runs_here = runs_here;
    if constexpr (requires { made.cost(call.whole, call.whole, call.ranks); }) {
      if (!plan.cost)
        card.cost = [made, call] { return made.cost(call.whole, products(call).front(), call.ranks); };
    }
    cards_.push_back(std::move(card));
    if (!runs_here) return;
    makers_.push_back([name, made](DenseBench& bench, Problem& problem) { bench.add(name, made, problem); });
  }
  /// Adds a part that the program runs by itself, before all others.
  void add_own(const std::string& name) {
    cards_.push_back(card_of(name, Role::kPart, Plan<DenseCall>{}, DenseCall{}));
    cards_.back().by_program = true;
  }

  void make(DenseBench& bench, Problem& problem) const {
    for (const auto& maker : makers_) maker(bench, problem);
  }
  CostCards cards() const { return {Problem::largest_products(options_.shape, options_.gpus), cards_}; }

 private:
  static std::vector<MatmulShape> products(const DenseCall& call) {
    return Problem::largest_products(call.whole, call.ranks);
  }

  const Options& options_;
  std::vector<VariantCard> cards_;
  std::vector<std::function<void(DenseBench&, Problem&)>> makers_;
};

/// What a program does around its bench.
struct DenseFrame {
  std::function<void(const Options& options, Report& report)> before = {};  ///< once, before there are ranks
  std::function<void(const DenseBench& bench)> after = {};                  ///< on each rank
};

/// Calls body(tag) with the TypeTag of this type. Types: those of the chapter; without them f16, bf16 and
/// f32.
template <Floating... Types, typename Body>
void visit_dense(ElementType type, const Body& body) {
  if constexpr (sizeof...(Types) == 0) {
    visit_type<__half, __nv_bfloat16, float>(type, body);
  } else {
    visit_type<Types...>(type, body);
  }
}

/// On each rank, with the options' type: calls body(tag, rank), where `tag` is as in visit_dense().
template <Floating... Types, typename Body>
void run_dense_ranks(const Options& options, const Body& body) {
  if (options.processes != nullptr && backend::modelled_time())
    throw Skip("virtual GPUs have no network between processes; nodes of one process: --gpus-per-node");
  run_ranks(
      options.gpus,
      [&](Rank& rank) { visit_dense<Types...>(options.type, [&](auto tag) { body(tag, rank); }); },
      options.processes);
}

/// The same with the rank's part of the problem, which is printed: calls body(problem).
template <template <Floating> class Problem, Floating... Types, typename Body>
void run_dense_problem(const Options& options, const Body& body) {
  run_dense_ranks<Types...>(options, [&](auto tag, Rank& rank) {
    Problem<typename decltype(tag)::type> problem(rank, options.shape, options.seed);
    print_problem(problem);
    body(problem);
  });
}

/// main() of a chapter on dense products. `rows` is a function of a DenseTable<Problem<T>>&, to which it adds
/// the variants. On each rank: makes the problem and the chosen variants, verifies, times, prints and saves.
template <template <Floating> class Problem, Floating... Types, typename Rows>
int dense_chapter_main(int argc, char** argv, ChapterInfo chapter, const Rows& rows,
                       const DenseFrame& frame = {}) {
  chapter.table = [&](const Options& options) {
    CostCards cards;
    visit_dense<Types...>(options.type, [&](auto tag) {
      DenseTable<Problem<typename decltype(tag)::type>> table(options);
      rows(table);
      cards = table.cards();
    });
    return cards;
  };
  return chapter_main(argc, argv, chapter, [&](const Options& options, Report& report) {
    if (frame.before) frame.before(options, report);
    if (chapter.table(options).all_by_program(options.variants)) return;
    run_dense_problem<Problem, Types...>(options, [&]<typename Given>(Given& problem) {
      DenseTable<Given> table(options);
      rows(table);
      DenseBench bench(problem, options);
      table.make(bench, problem);
      bench.run(report);
      if (frame.after) frame.after(bench);
    });
  });
}

}  // namespace overlap
