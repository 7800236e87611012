// Chapter 06: product and reduce-scatter by NCCL, by accumulators that go round, and by all-to-all and one
// sum.
#include <memory>
#include <string>

#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "06_reduce_scatter",
    .summary =
        "C = X W, X by columns, W by rows: each rank gets its rows of the sum, while products still run.",
    .variants = {"nccl", "rotating", "rotating_f32", "rotating_zero_filled", "all_to_all", "split_only",
                 "communication_only"},
    .on_virtual_gpus = {.shape = {0, 512, 0}, .per_gpu = {128, 0, 512}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 4096, 0}, .per_gpu = {1024, 0, 4096}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 24, 0}, .per_gpu = {24, 0, 32}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

/// The algorithms: the whole problem, verified.
template <Floating T>
void add_algorithms(DenseBench& bench, ScatterProblem<T>& problem) {
  bench.add_algorithm<MultiplyThenScatter<T>>("nccl", problem);
  bench.add_algorithm<RotatingAccumulators<T>>("rotating", problem);
  bench.add_algorithm<RotatingAccumulators<T, float>>("rotating_f32", problem);
  bench.add_algorithm<RotatingAccumulators<T>>("rotating_zero_filled", problem, Start::kZeros);
  bench.add_algorithm<AllToAllSum<T>>("all_to_all", problem);
}

/// Parts of all_to_all alone: what splitting the product costs, and how long the transfers take.
template <Floating T>
void add_parts(DenseBench& bench, ScatterProblem<T>& problem) {
  const auto make = [&problem] { return std::make_shared<AllToAllSum<T>>(problem.rank(), problem.whole()); };
  bench.add("split_only", Role::kPart, [&]() -> DenseBench::Enqueue {
    return [parts = make(), &problem](cudaStream_t stream) {
      parts->run_products(problem.a(), problem.b(), stream);
    };
  });
  bench.add("communication_only", Role::kCommunication, [&]() -> DenseBench::Enqueue {
    return [parts = make()](cudaStream_t stream) { parts->run_transfers(stream); };
  });
}

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      ScatterProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      add_algorithms(bench, problem);
      add_parts(bench, problem);
      bench.verify();
      bench.time();
      bench.print();
      bench.save(report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
