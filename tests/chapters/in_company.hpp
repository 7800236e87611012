// An algorithm whose kernels wait for other ranks, beside other kernels that do so too: NCCL's, or its own.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "dense_run.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// What a rank enqueues beside the calls, on its second stream. `is_right`: behind the last one.
struct Company {
  std::function<void()> enqueue;
  std::function<void()> expect_right;
};

/// An all-reduce of NCCL, of at most so many multiprocessors. Collective. Throws Skip if ranks share a GPU.
inline Company nccl_of(Rank& rank, int blocks) {
  constexpr std::size_t kCount = 1 << 16;
  const auto ones = std::make_shared<DeviceBuffer<int>>(rank.device(), kCount);
  const auto sums = std::make_shared<DeviceBuffer<int>>(rank.device(), kCount);
  CUDA_CHECK(cudaMemset(ones->data(), 1, ones->bytes()));
  CUDA_CHECK(cudaDeviceSynchronize());
  const auto reduce = [&rank, ones, sums, all = rank.rail(1, blocks)] {
    NCCL_CHECK(
        ncclAllReduce(ones->data(), sums->data(), kCount, ncclInt32, ncclSum, all, rank.second_stream()));
  };
  reduce();  // connects the ranks
  rank.synchronize(rank.second_stream());
  return {reduce, [&rank, sums] {
            int last = 0;
            CUDA_CHECK(cudaMemcpy(&last, sums->data() + kCount - 1, sizeof last, cudaMemcpyDeviceToHost));
            EXPECT_EQ(last, rank.size() * 0x01010101);
          }};
}

/// Another Algorithm(rank, whole, more...). Collective.
template <typename Algorithm, typename Problem, typename... More>
Company another(Rank& rank, MatmulShape whole, More... more) {
  const auto problem = std::make_shared<Problem>(rank, whole, 3);
  problem->fill_exact();
  problem->poison_result();
  const auto algorithm = std::make_shared<Algorithm>(rank, whole, more...);
  return {[&rank, problem, algorithm] {
            algorithm->run(problem->a(), problem->b(), problem->c(), rank.second_stream());
          },
          [problem] {
            const Verification found = problem->compare_exact(false);
            EXPECT_TRUE(found.ok()) << describe(found);
          }};
}

/// A product of which each kernel of chapters 18 and 19 has a tile for every multiprocessor, in each step.
inline MatmulShape product_that_fills(int gpus, std::int64_t k = 128) {
  int multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  return {std::int64_t{gpus} * 128, std::int64_t{gpus} * 256 * multiprocessors, k};
}

/// Twice, ranks enqueue a call of an Algorithm(rank, whole, more...) and company_of(rank), odd ranks the call
/// first, even ranks second. All results are compared.
template <typename Algorithm, typename Problem, typename CompanyOf, typename... More>
void run_in_company(int ranks, MatmulShape whole, const CompanyOf& company_of, More... more) {
  const Verification found = found_on(ranks, [&](Rank& rank) {
    Problem problem(rank, whole, 1);
    problem.fill_exact();
    problem.poison_result();
    Algorithm algorithm(rank, whole, more...);
    const Company company = company_of(rank);
    const auto call = [&] { algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream()); };
    for (int i = 0; i < 2; ++i) {
      rank.barrier();
      rank.id() % 2 == 0 ? company.enqueue() : call();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until it runs, on a real GPU
      rank.id() % 2 == 0 ? call() : company.enqueue();
      rank.synchronize(rank.stream());
      rank.synchronize(rank.second_stream());
    }
    company.expect_right();
    rank.barrier();
    return problem.compare_exact(false);
  });
  EXPECT_TRUE(found.ok()) << describe(found);
  EXPECT_GT(found.elements, 0);
}

/// Multiprocessors that the all-reduces take.
inline constexpr int kNcclBlocks = 4;

/// NCCL's all-reduces in opposite order are right if the algorithm leaves them multiprocessors. With too few
/// GPUs the test is skipped before its run (OnRanksOfNccl).
template <typename Algorithm, typename Problem, typename... More>
void expect_right_beside_nccl(int ranks, More... more) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  if (ranks > gpus) GTEST_SKIP() << "NCCL needs " << ranks << " GPUs";
  run_or_skip([&] {
    run_in_company<Algorithm, Problem>(
        ranks, product_that_fills(ranks), [](Rank& rank) { return nccl_of(rank, kNcclBlocks); }, more...);
  });
}

/// Two of the algorithm in opposite order are right, where each leaves the other half of the GPU.
template <typename Algorithm, typename Problem, typename... More>
void expect_two_right(int ranks, More... more) {
  int multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const int half = (multiprocessors + 1) / 2;
  const MatmulShape whole = product_that_fills(ranks);
  run_or_skip([&] {
    run_in_company<Algorithm, Problem>(
        ranks, whole, [&](Rank& rank) { return another<Algorithm, Problem>(rank, whole, more..., half); },
        more..., half);
  });
}

/// On virtual GPUs: `run` never ends, and the report has these parts.
template <typename Run>
void expect_deadlock(const Run& run, const std::vector<std::string>& parts) {
  testing::internal::CaptureStderr();
  EXPECT_ANY_THROW(run());
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("deadlock"), std::string::npos) << report;
  for (const std::string& part : parts)
    EXPECT_NE(report.find(part), std::string::npos) << part << " is missing in: " << report;
}

/// On virtual GPUs: if no multiprocessor is set aside, two calls in opposite order deadlock; the report names
/// `kernel` of both.
template <typename Algorithm, typename Problem>
void expect_two_wait_for_ever(const std::string& kernel) {
  const MatmulShape whole = product_that_fills(2);
  const auto other = [&](Rank& rank) { return another<Algorithm, Problem>(rank, whole); };
  expect_deadlock([&] { run_in_company<Algorithm, Problem>(2, whole, other); },
                  {kernel, "8 cannot start (no free multiprocessor)", "0 of 8 blocks done"});
}

}  // namespace overlap
