// The bench of the chapters on dense products.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "overlap/bench/bench.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/data/cost.hpp"

namespace overlap {

/// A class whose cost() takes these arguments. A concept, since nvcc 13.0 misjudges a requires-expression on
/// a parameter pack inside a lambda.
template <typename Algorithm, typename... Given>
concept HasCost = requires(Given... given) {
  Algorithm::cost(given...);
};

/// How a variant is made: an object of a class with a constructor Algorithm(rank, whole, more...), of which
/// enqueue(algorithm, problem, stream) enqueues one call. See algorithm(), product() and part().
template <typename Algorithm, typename Function, typename... More>
struct MadeOf {
  Role role;
  Function enqueue;
  std::tuple<More...> more;

  /// Makes the object, on all ranks, and returns what enqueues one call.
  template <typename Problem>
  std::function<void(cudaStream_t)> operator()(Problem& problem) const {
    const auto make = [&](const More&... each) {
      return std::make_shared<Algorithm>(problem.rank(), problem.whole(), each...);
    };
    return [algorithm = std::apply(make, more), &problem, enqueue = enqueue](cudaStream_t stream) {
      enqueue(*algorithm, problem, stream);
    };
  }

  /// The class's cost card, of rank 0; none if it has none, or for what is only a part of a call. `product`
  /// is what the rank multiplies.
  std::optional<Cost> cost(MatmulShape whole, MatmulShape product, int ranks) const {
    if (role == Role::kPart || role == Role::kCommunication) return {};
    return std::apply(
        [&]([[maybe_unused]] const More&... each) -> std::optional<Cost> {
          if constexpr (HasCost<Algorithm, MatmulShape, int, int, More...>) {
            return Algorithm::cost(whole, ranks, 0, each...);
          } else if constexpr (HasCost<Algorithm, MatmulShape, int, int>) {
            return Algorithm::cost(whole, ranks, 0);
          } else if constexpr (HasCost<Algorithm, MatmulShape, int>) {  // the same for all ranks
            return Algorithm::cost(whole, ranks);
          } else if constexpr (HasCost<Algorithm, MatmulShape>) {  // it knows no ranks
            return Algorithm::cost(product);
          } else {
            return {};
          }
        },
        more);
  }
};

/// How a variant is made that is no single class: make(problem) returns what enqueues one call.
template <typename Function>
struct MadeBy {
  Role role;
  Function make;

  /// See MadeOf.
  template <typename Problem>
  std::function<void(cudaStream_t)> operator()(Problem& problem) const {
    return make(problem);
  }
};
/// Of a lambda.
template <typename Function>
MadeBy(Role, Function) -> MadeBy<Function>;

/// A part of the work, or an algorithm that is called in another way than the usual one.
template <typename Algorithm, typename Function, typename... More>
MadeOf<Algorithm, Function, More...> part(Role role, Function enqueue, More... more) {
  return {role, enqueue, {more...}};
}
/// An algorithm: a class with a function run(a, b, c, stream).
template <typename Algorithm, typename... More>
auto algorithm(More... more) {
  const auto run = [](auto& algorithm, auto& data, cudaStream_t stream) {
    algorithm.run(data.a(), data.b(), data.c(), stream);
  };
  return part<Algorithm>(Role::kAlgorithm, run, more...);
}
/// A product without transfers, whose run(a, b, c, stream) gets all of A.
template <typename Algorithm, typename... More>
auto product(More... more) {
  const auto run = [](auto& algorithm, auto& data, cudaStream_t stream) {
    algorithm.run(data.whole_a(), data.b(), data.c(), stream);
  };
  return part<Algorithm>(Role::kProduct, run, more...);
}

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

  /// The same for what algorithm(), product() and part() return.
  template <typename Made, typename Problem>
  void add(const std::string& name, const Made& made, Problem& problem) {
    add(name, made.role, [&] { return made(problem); });
  }

  /// Prints where the time of `algorithm` beyond GEMM only goes: into splitting the GEMM ("split_only"), and
  /// into the exposed part of "communication_only". Prints nothing without these variants, or with one rank.
  void print_exposed(const std::string& algorithm) const;

 private:
  void fill(Data data) override;
  std::string all_right(const std::string& names) const override;
  ResultTable table() const override;
  Results::Fields row(const Variant& variant, const VariantTimes& times) const;

  DenseProblem& problem_;
};

}  // namespace overlap
