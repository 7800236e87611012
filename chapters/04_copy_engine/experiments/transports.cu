// Experiments of chapter 04: what transports and the ring's products cost each other, in which pattern all
// ranks send at once, and what a message costs by its size.
#include <algorithm>
#include <vector>

#include "04_copy_engine/experiments/message_sizes.cuh"
#include "04_copy_engine/experiments/patterns.cuh"
#include "04_copy_engine/experiments/transport_timing.cuh"
#include "overlap/bench/split_only.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::copy_engine {
namespace {

const ChapterInfo kExperiment = gather_chapter({
    .name = "04_copy_engine/transports",
    .summary = "Transports beside GEMMs, patterns of an all-gather, and messages by their size.",
    .variants = {"transports", "patterns", "sizes"},
});

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
    product.after_last = [&] {
      require_right(problem.compare_normal(options.corrupt), "products beside transports");
    };
  }
  time_transports(transports, rank, product, step, options, report);
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

void run(const Options& options, Report& report) {
  if (options.gpus < 2) throw Skip("it takes two ranks to send anything");
  run_dense_problem<GatherProblem>(options, [&]<Floating T>(GatherProblem<T>& problem) {
    Rank& rank = problem.rank();
    const MatmulShape product = problem.product();
    const MatmulShape step = {balanced_share(product.m, rank.size(), 0).size(), product.n, product.k};
    const std::int64_t bytes = step.m * step.k * std::int64_t{sizeof(T)};
    if (options.runs("transports")) run_transports(problem, step, bytes, options, report);
    if (options.runs("patterns")) time_patterns(rank, bytes, options, report);
    if (options.runs("sizes")) time_sizes(rank, sizes_around(bytes), options, report);
  });
}

}  // namespace
}  // namespace overlap::copy_engine

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::copy_engine::kExperiment, overlap::copy_engine::run);
}
