// The frame of the chapters on dense products: verifies every variant, then times them all in turns, and
// prints and saves one table. A chapter's main.cu adds its variants to it.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "overlap/bench/dense_problem.hpp"
#include "overlap/bench/results.hpp"
#include "overlap/bench/settings.hpp"
#include "overlap/bench/timing.hpp"

namespace overlap {

/// What a variant does, which decides how it is checked and what is said of its time.
enum class Role {
  kGemmOnly,       ///< the rank's product alone, which DenseBench adds itself
  kAlgorithm,      ///< the whole problem, verified
  kProduct,        ///< the same result without the transfers, verified
  kPart,           ///< a part of the work; writes no result
  kCommunication,  ///< the transfers alone; writes no result
};

/// Verifies and times several ways to solve one problem. All members are collective, and called by each rank
/// in the same order. Rank 0 prints.
class DenseBench {
 public:
  /// Enqueues one call on a stream, without waiting.
  using Enqueue = std::function<void(cudaStream_t stream)>;

  /// For the variants of the settings. GEMM only comes first, and is always there.
  DenseBench(DenseProblem& problem, const BenchSettings& settings);

  /// Adds the variant if it was chosen: `make` constructs it, on all ranks, and returns what enqueues one
  /// call. If that throws Skip, the variant is left out and the reason printed.
  void add(const std::string& name, Role role, const std::function<Enqueue()>& make);

  /// The same for an algorithm: a class with a constructor Algorithm(rank, whole, more...) and a function
  /// run(a, b, c, stream).
  template <typename Algorithm, typename Problem, typename... More>
  void add_algorithm(const std::string& name, Problem& problem, More... more) {
    add_result<Algorithm>(name, Role::kAlgorithm, problem, more...);
  }
  /// The same for a product without transfers.
  template <typename Algorithm, typename Problem, typename... More>
  void add_product(const std::string& name, Problem& problem, More... more) {
    add_result<Algorithm>(name, Role::kProduct, problem, more...);
  }

  /// Runs each variant once on exact data and compares every element; then prints how many are right.
  /// Throws WrongResult; Skip if no algorithm is left to run. Without --check nothing is compared.
  void verify();
  /// Times all variants in turns on random normals, and compares the result of each one's last timed call
  /// with GEMM only's. With --timeline each variant then runs once more, as a section of it. `back_to_back`:
  /// see time_variants().
  void time(bool back_to_back = true);
  /// Runs each algorithm once more, and calls `look` with its name and its result in C. After time(): on
  /// random normals.
  void look_at_results(const std::function<void(const std::string& name)>& look);
  /// Prints the table.
  void print() const;
  /// Adds one result for each variant, also for those that were left out.
  void save(Results& results) const;
  /// All of these, for a program that goes on with other measurements: verify, time, print, save. If no
  /// algorithm is left to run, only says so in the results.
  void run(Results& results);

  /// The times of a variant, none if it did not run.
  const VariantTimes* times_of(const std::string& name) const;

 private:
  struct Variant {
    std::string name;
    Role role;
    Enqueue enqueue;
  };

  template <typename Algorithm, typename Problem, typename... More>
  void add_result(const std::string& name, Role role, Problem& problem, More... more) {
    add(name, role, [&]() -> Enqueue {
      auto algorithm = std::make_shared<Algorithm>(problem.rank(), problem.whole(), more...);
      return [algorithm, &problem](cudaStream_t stream) {
        algorithm->run(problem.a(), problem.b(), problem.c(), stream);
      };
    });
  }
  void save_skipped(Results& results) const;
  void run_once(const Variant& variant);
  void compare(const Variant& variant, bool exact);

  DenseProblem& problem_;
  const BenchSettings settings_;  // a copy: a caller may pass a temporary
  std::vector<Variant> variants_;
  std::vector<VariantTimes> times_;
  Regime regime_;                                             // in which they were taken
  std::vector<std::pair<std::string, std::string>> skipped_;  // variants that were left out, and why
};

/// Prints what is multiplied and how it is shared out; `problem` tells it of each rank, rank 0 prints.
void print_shares(const DenseProblem& problem);

}  // namespace overlap
