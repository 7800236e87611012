// Experiments of chapter 04: what transports and the ring's products cost each other, in which pattern all
// ranks send at once, and what a message costs by its size.
#include <algorithm>
#include <vector>

#include "04_copy_engine/experiments/message_sizes.cuh"
#include "04_copy_engine/experiments/patterns.cuh"
#include "04_copy_engine/experiments/transport_timing.cuh"
#include "04_copy_engine/split_only.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kExperiment = {
    .name = "04_copy_engine/transports",
    .summary = "Transports beside products, patterns of an all-gather, and messages by their size.",
    .variants = {"transports", "patterns", "sizes"},
    .on_virtual_gpus = {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

/// Each transport alone, and beside the products that the ring has.
template <Floating T>
void run_transports(GatherProblem<T>& problem, MatmulShape step, std::int64_t bytes, const Options& options,
                    Report& report) {
  Rank& rank = problem.rank();
  Transports transports(rank, bytes);
  if (options.check) transports.verify(options.corrupt);
  SplitOnly<T> split(rank, problem.whole());
  const auto multiply = [&](cudaStream_t stream) {
    split.run(problem.whole_a(), problem.b(), problem.c(), stream);
  };
  problem.fill_normal();
  SideBySideCall product{multiply, {}};
  if (options.check) {
    problem.gemm_only(rank.stream());  // what the products beside transports are compared with
    product.before_last = [&] { problem.poison_result(); };
    product.after_last = [&] { require_right(problem.compare_normal(false), "products beside transports"); };
  }
  time_transports(transports, rank, product, step, options.iterations, options.check, report);
}

/// Message sizes around the shard: where the fixed cost counts, and where only the bytes do. At least 16
/// bytes.
std::vector<std::int64_t> sizes_around(std::int64_t bytes) {
  const std::int64_t below = backend::modelled_time() ? 8 : 512;
  const std::int64_t smallest = std::max(bytes / below, std::int64_t{16});
  const int quadruplings = backend::modelled_time() ? 2 : 6;
  std::vector<std::int64_t> sizes;
  for (int i = 0; i <= quadruplings; ++i) sizes.push_back(smallest << (2 * i));
  return sizes;
}

template <Floating T>
void run_rank(Rank& rank, const Options& options, Report& report) {
  GatherProblem<T> problem(rank, options.shape, options.seed);
  print_shares(problem);
  const MatmulShape product = problem.product();
  const MatmulShape step = {balanced_share(product.m, rank.size(), 0).size(), product.n, product.k};
  const std::int64_t bytes = step.m * step.k * std::int64_t{sizeof(T)};
  if (options.runs("transports")) run_transports(problem, step, bytes, options, report);
  if (options.runs("patterns")) time_patterns(rank, bytes, options.iterations, options.check, report);
  if (options.runs("sizes")) time_sizes(rank, sizes_around(bytes), options.iterations, options.check, report);
}

void run(const Options& options) {
  if (options.gpus < 2) throw Skip("it takes two ranks to send anything");
  Report report(kExperiment, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(
        options.type, [&](auto tag) { run_rank<typename decltype(tag)::type>(rank, options, report); });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::kExperiment, overlap::run);
}
