// The frame of the programs on sparse gradients.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "overlap/bench/sparse_bench.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/cost_cards.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// How a variant is made: a class with a constructor Algorithm(rank, shape, more...). See all_reduce().
template <typename Algorithm, typename... More>
struct AllReduceOf {
  std::tuple<More...> more;

  template <typename Bench>
  std::unique_ptr<Algorithm> operator()(Bench& bench) const {
    const auto make = [&](const More&... each) {
      return std::make_unique<Algorithm>(bench.rank(), bench.data().shape(), each...);
    };
    return std::apply(make, more);
  }

  /// The class's cost card; none if it wants to know more than this.
  std::optional<Cost> cost(const SparseSum& sum) const {
    const auto& [shape, call] = sum;
    return std::apply(
        [&, &shape = shape, &call = call]([[maybe_unused]] const More&... each) -> std::optional<Cost> {
          if constexpr (requires { Algorithm::cost(call, each...); }) {
            return Algorithm::cost(call, each...);
          } else if constexpr (requires { Algorithm::cost(call, shape); }) {
            return Algorithm::cost(call, shape);
          } else if constexpr (requires { Algorithm::cost(shape, call.ranks); }) {
            return Algorithm::cost(shape, call.ranks);
          } else if constexpr (requires { Algorithm::cost(shape, call.local, call.global); }) {
            return Algorithm::cost(shape, call.local, call.global);
          } else {
            return {};
          }
        },
        more);
  }
};

/// A sparse all-reduce, made with these arguments behind rank and shape.
template <typename Algorithm, typename... More>
AllReduceOf<Algorithm, More...> all_reduce(More... more) {
  return {{more...}};
}

/// The one table of a program's variants: name, how it is made, how it is predicted.
template <SparseIndex Index, Floating T>
class SparseTable {
 public:
  /// For a call of these options. --list gives none: then only names are asked for.
  explicit SparseTable(const Options& options, Report* report = nullptr)
      : sum_(sum_of(options)), report_(report) {}

  const SparseSum& sum() const { return sum_; }  ///< the call
  /// Of the run, to which a variant may add results of its own on rank 0; none for --list and --cost.
  Report* report() const { return report_; }

  /// Adds a variant. `made`: all_reduce(), or a function of the bench that returns a std::unique_ptr to an
  /// object as SparseBench wants it.
  template <typename Made>
  void add(const std::string& name, const Made& made, const Plan<SparseSum>& plan = {}) {
    cards_.push_back(card_of(name, Role::kAlgorithm, plan, sum_));
    if constexpr (requires { made.cost(sum_); }) {
      if (!plan.cost) cards_.back().cost = [made, sum = sum_] { return made.cost(sum); };
    }
    makers_.push_back(
        [name, made](SparseBench<Index, T>& bench) { bench.add(name, [&] { return made(bench); }); });
  }

  void make(SparseBench<Index, T>& bench) const {
    for (const auto& maker : makers_) maker(bench);
  }
  CostCards cards() const { return {{}, cards_}; }

 private:
  SparseSum sum_;
  Report* report_;
  std::vector<VariantCard> cards_;
  std::vector<std::function<void(SparseBench<Index, T>&)>> makers_;
};

/// main() of a chapter on sparse gradients. `rows` is a function of a SparseTable<Index, T>&, to which it
/// adds the variants. On each rank: makes those that were chosen, verifies, times, prints and saves.
template <typename Rows>
int sparse_chapter_main(int argc, char** argv, ChapterInfo chapter, const Rows& rows) {
  chapter.table = [&](const Options& options) {
    CostCards cards;
    visit_sparse(options.sparse.index, options.type, [&](auto index, auto type) {
      SparseTable<typename decltype(index)::type, typename decltype(type)::type> table(options);
      rows(table);
      cards = table.cards();
    });
    return cards;
  };
  return chapter_main(argc, argv, chapter, [&](const Options& options, Report& report) {
    const SparseOptions& sparse = options.sparse;
    require_room(sparse.shape, options.gpus, sparse.pattern, sparse.duplicates, options.type, sparse.index);
    const SparseData data(sparse.shape, options.gpus, sparse.pattern, sparse.duplicates, options.seed);
    if (options.check) require_exact_sums(data, options);
    run_ranks(options.gpus, [&](Rank& rank) {
      visit_sparse(sparse.index, options.type, [&](auto index, auto type) {
        using Index = typename decltype(index)::type;
        using T = typename decltype(type)::type;
        SparseTable<Index, T> table(options, &report);
        rows(table);
        SparseBench<Index, T> bench(rank, data, options, sparse.pattern);
        table.make(bench);
        bench.run(report);
      });
    });
  });
}

}  // namespace overlap
