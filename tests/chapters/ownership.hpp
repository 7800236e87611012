// A, B and C belong to the call from run() until `stream` has passed it. The caller writes A and B on its
// stream directly before run(), and overwrites or reads A, B and C directly behind it, without a wait. A side
// stream that starts before A is made, or still accesses A, B or C after the call, gives wrong values; in the
// race build a report with both lines.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "mlp_run.hpp"
#include "on_ranks.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "schedule.hpp"

namespace overlap {

/// A matrix in the caller's memory, the same memory for call after call.
template <Floating T>
class CallersMatrix {
 public:
  CallersMatrix(const Rank& rank, std::int64_t elements)
      : memory_(rank.device(), static_cast<std::size_t>(elements)) {}

  T* data() const { return memory_.data(); }

  void write(const T* from, cudaStream_t stream) const { copy(memory_.data(), from, stream); }
  void read(T* to, cudaStream_t stream) const { copy(to, memory_.data(), stream); }
  /// All bits become 1: each element is a NaN.
  void overwrite(cudaStream_t stream) const {
    if (memory_.size() > 0) CUDA_CHECK(cudaMemsetAsync(memory_.data(), 0xFF, memory_.bytes(), stream));
  }
  bool is_overwritten() const {
    std::vector<unsigned char> bytes(memory_.bytes());
    if (bytes.empty()) return true;
    CUDA_CHECK(cudaMemcpy(bytes.data(), memory_.data(), bytes.size(), cudaMemcpyDeviceToHost));
    return std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0xFF; });
  }

 private:
  void copy(T* to, const T* from, cudaStream_t stream) const {
    if (memory_.size() > 0) CUDA_CHECK(cudaMemcpyAsync(to, from, memory_.bytes(), cudaMemcpyDefault, stream));
  }

  DeviceBuffer<T> memory_;
};

/// What chapter 07 has for B: the parameters of a layer.
template <Floating T>
class CallersLayer {
 public:
  CallersLayer(const Rank& rank, std::int64_t hidden, std::int64_t own_columns)
      : gain_(rank, hidden), w1_(rank, hidden * own_columns), w2_(rank, own_columns * hidden) {}

  MlpLayer<T> data() const { return {gain_.data(), w1_.data(), w2_.data(), activation_, epsilon_}; }

  void write(const MlpLayer<T>& from, cudaStream_t stream) {
    gain_.write(from.gain, stream);
    w1_.write(from.w1, stream);
    w2_.write(from.w2, stream);
    activation_ = from.activation;
    epsilon_ = from.epsilon;
  }
  void overwrite(cudaStream_t stream) const {
    for (const CallersMatrix<T>* matrix : {&gain_, &w1_, &w2_}) matrix->overwrite(stream);
  }

 private:
  CallersMatrix<T> gain_, w1_, w2_;
  Activation activation_ = Activation::kRelu;
  float epsilon_ = 0;
};

/// What one rank gives to run().
template <Floating T, typename Factor = CallersMatrix<T>>
struct CallersMatrices {
  CallersMatrix<T> a;
  Factor b;
  CallersMatrix<T> c;
};

/// A rank's share of so many rows or columns.
inline std::int64_t own_share(const DenseProblem& problem, std::int64_t of) {
  return balanced_share(of, problem.rank().size(), problem.rank().id()).size();
}

/// As large as the problem's.
template <Floating T>
CallersMatrices<T> matrices_like(const GatherProblem<T>& problem) {
  const auto [m, n, k] = problem.whole();
  const std::int64_t columns = own_share(problem, n);
  Rank& rank = problem.rank();
  return {{rank, own_share(problem, m) * k}, {rank, k * columns}, {rank, m * columns}};
}
template <Floating T>
CallersMatrices<T> matrices_like(const ScatterProblem<T>& problem) {
  const auto [m, n, k] = problem.whole();
  const std::int64_t depth = own_share(problem, k);
  Rank& rank = problem.rank();
  return {{rank, m * depth}, {rank, depth * n}, {rank, own_share(problem, m) * n}};
}
template <Floating T>
CallersMatrices<T> matrices_like(const AllReduceProblem<T>& problem) {
  const auto [m, n, k] = problem.whole();
  const std::int64_t depth = own_share(problem, k);
  Rank& rank = problem.rank();
  return {{rank, m * depth}, {rank, depth * n}, {rank, m * n}};
}
template <Floating T>
CallersMatrices<T, CallersLayer<T>> matrices_like(const MlpProblem<T>& problem) {
  const auto [tokens, columns, hidden] = problem.whole();
  const std::int64_t elements = own_share(problem, tokens) * hidden;
  Rank& rank = problem.rank();
  return {{rank, elements}, {rank, hidden, own_share(problem, columns)}, {rank, elements}};
}
template <Floating T>
CallersMatrices<T, CallersLayer<T>> matrices_like(const MlpOnEveryRank<T>& problem) {
  const auto [tokens, columns, hidden] = problem.whole();
  Rank& rank = problem.rank();
  return {{rank, tokens * hidden}, {rank, hidden, own_share(problem, columns)}, {rank, tokens * hidden}};
}

/// What the caller does first behind a call. Whatever it is, it overwrites all three then.
enum class Next { kOverwritesA, kOverwritesB, kReadsC, kOverwritesC };

/// Back-to-back calls of one object, each on its own data; two of each kind, because algorithms may alternate
/// between two sets of buffers. All results that the caller has read must be exact.
template <typename Algorithm, typename Problem, typename... More>
void expect_caller_owns_matrices_on(Rank& rank, MatmulShape whole, More... more) {
  constexpr Next kCalls[] = {Next::kOverwritesA, Next::kOverwritesA, Next::kOverwritesB, Next::kOverwritesB,
                             Next::kReadsC,      Next::kReadsC,      Next::kOverwritesC, Next::kOverwritesC};
  Algorithm algorithm(rank, whole, more...);
  std::vector<std::unique_ptr<Problem>> problems;
  for (std::uint64_t call = 0; call < std::size(kCalls); ++call) {
    problems.push_back(std::make_unique<Problem>(rank, whole, 1 + 2 * call));
    problems.back()->fill_exact();
    problems.back()->poison_result();
  }
  auto matrices = matrices_like(*problems.front());
  // A stream that the algorithm does not know. Where ranks share a GPU there are not enough for all.
  std::unique_ptr<Stream> own;
  if (!rank.shares_gpu()) own = std::make_unique<Stream>(rank.device());
  const cudaStream_t stream = own ? own->get() : rank.stream();

  const auto write = [&](Problem& problem) {
    matrices.a.write(problem.a(), stream);
    matrices.b.write(problem.b(), stream);
  };
  const auto overwrite_all = [&] {
    matrices.a.overwrite(stream);
    matrices.b.overwrite(stream);
    matrices.c.overwrite(stream);
  };
  // All of it once: nothing may be loaded while a stream waits for a signal.
  write(*problems.front());
  overwrite_all();
  matrices.c.read(problems.front()->c(), stream);
  rank.synchronize(stream);
  rank.barrier();

  for (std::size_t call = 0; call < std::size(kCalls); ++call) {
    Problem& problem = *problems[call];
    write(problem);
    algorithm.run(matrices.a.data(), matrices.b.data(), matrices.c.data(), stream);
    if (kCalls[call] == Next::kOverwritesA) matrices.a.overwrite(stream);
    if (kCalls[call] == Next::kOverwritesB) matrices.b.overwrite(stream);
    if (kCalls[call] != Next::kOverwritesC) matrices.c.read(problem.c(), stream);
    if (kCalls[call] == Next::kOverwritesC) matrices.c.overwrite(stream);
    overwrite_all();
  }
  rank.synchronize(stream);
  rank.barrier();  // before anything is freed, which waits for the GPU: see run_dense_on()
  CUDA_CHECK(cudaDeviceSynchronize());  // what a side stream may still do
  EXPECT_TRUE(matrices.c.is_overwritten()) << "C was written behind the last call, m = " << whole.m;
  for (std::size_t call = 0; call < std::size(kCalls); ++call) {
    if (kCalls[call] == Next::kOverwritesC) continue;
    const Verification found = problems[call]->compare_exact(false);
    EXPECT_TRUE(found.ok()) << "call " << call << ", m = " << whole.m << ": " << describe(found);
  }
}

/// The same on so many ranks, for each of these shapes, in the order of time and in random ones.
template <typename Algorithm, typename Problem, typename... More>
void expect_caller_owns_all_matrices(int ranks, const std::vector<MatmulShape>& shapes, More... more) {
  in_schedules([&] {
    run_ranks_or_skip(ranks, [&](Rank& rank) {
      for (const MatmulShape shape : shapes)
        expect_caller_owns_matrices_on<Algorithm, Problem>(rank, shape, more...);
    });
  });
}

/// The same with rows for all ranks, with fewer rows, columns and depth than ranks, and with one row.
template <typename Algorithm, typename Problem, typename... More>
void expect_caller_owns_matrices(int ranks, More... more) {
  expect_caller_owns_all_matrices<Algorithm, Problem>(ranks, {{19, 17, 11}, {2, 5, 3}, {1, 9, 7}}, more...);
}

}  // namespace overlap
