// The bench of the chapters on dense products.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>

#include "overlap/bench/bench.hpp"
#include "overlap/bench/dense_problem.hpp"

namespace overlap {

/// Several ways to solve a dense problem, timed by the GPUs beside the rank's product alone (GEMM only).
class DenseBench final : public Bench {
 public:
  /// Enqueues one call on a stream, without waiting.
  using Enqueue = std::function<void(cudaStream_t stream)>;

  /// For the variants of the settings. GEMM only comes first, and is always there.
  DenseBench(DenseProblem& problem, const BenchSettings& settings);

  const DenseProblem& problem() const { return problem_; }  ///< what is solved

  /// Adds the variant if it was chosen: `make` constructs it, on all ranks, and returns what enqueues one
  /// call. If that throws Skip, the variant is left out and the reason printed.
  void add(const std::string& name, Role role, const std::function<Enqueue()>& make);

  /// The same for an object of a class with a constructor Algorithm(rank, whole, more...), of which
  /// enqueue(algorithm, problem, stream) enqueues one call.
  template <typename Algorithm, typename Problem, typename Function, typename... More>
  void add_part(const std::string& name, Role role, Problem& problem, const Function& enqueue, More... more) {
    add(name, role, [&]() -> Enqueue {
      auto algorithm = std::make_shared<Algorithm>(problem.rank(), problem.whole(), more...);
      return [algorithm, &problem, enqueue](cudaStream_t stream) { enqueue(*algorithm, problem, stream); };
    });
  }
  /// The same for an algorithm: a class with a function run(a, b, c, stream).
  template <typename Algorithm, typename Problem, typename... More>
  void add_algorithm(const std::string& name, Problem& problem, More... more) {
    const auto run = [](Algorithm& algorithm, Problem& data, cudaStream_t stream) {
      algorithm.run(data.a(), data.b(), data.c(), stream);
    };
    add_part<Algorithm>(name, Role::kAlgorithm, problem, run, more...);
  }
  /// The same for a product without transfers, whose run(a, b, c, stream) gets all of A.
  template <typename Algorithm, typename Problem, typename... More>
  void add_product(const std::string& name, Problem& problem, More... more) {
    const auto run = [](Algorithm& algorithm, Problem& data, cudaStream_t stream) {
      algorithm.run(data.whole_a(), data.b(), data.c(), stream);
    };
    add_part<Algorithm>(name, Role::kProduct, problem, run, more...);
  }

  /// Prints where the time of `algorithm` beyond the product alone goes: into splitting the product, as
  /// "split_only" tells, and into what is not hidden of "communication_only". Nothing without one of them, or
  /// with one rank.
  void print_exposed(const std::string& algorithm) const;

 private:
  void fill(Data data) override;
  std::string all_right(const std::string& names) const override;
  ResultTable table() const override;
  Results::Fields row(const Variant& variant, const VariantTimes& times) const;

  DenseProblem& problem_;
};

}  // namespace overlap
