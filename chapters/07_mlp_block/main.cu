// Chapter 07: an MLP block over several GPUs by tensor parallelism, by tensor and sequence parallelism, and
// the latter with its communication hidden.
//
// The three sizes: --m tokens, --n feed-forward size, --k hidden size.
#include <memory>

#include "07_mlp_block/overlapped_block.cuh"
#include "07_mlp_block/sequence_block.cuh"
#include "07_mlp_block/vanilla_block.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/mlp_problem.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "07_mlp_block",
    .summary = "Y = X + act(norm(X) W1) W2: m tokens, feed-forward size n, hidden size k.",
    .variants = {"vanilla", "sequence_parallel", "overlapped"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus = {.shape = {8192, 28672, 8192}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

/// The one with all of X and Y on every rank.
template <Floating T>
DenseBench::Enqueue make_vanilla(MlpProblem<T>& problem) {
  auto block = std::make_shared<VanillaBlock<T>>(problem.rank(), problem.whole());
  return [block, &problem](cudaStream_t stream) {
    block->run(problem.whole_x(), problem.b(), problem.whole_y(), stream);
  };
}

void run(const Options& options) {
  Report report(kChapter, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      MlpProblem<T> problem(rank, options.shape, options.seed);
      print_shares(problem);
      DenseBench bench(problem, options);
      bench.add("vanilla", Role::kAlgorithm, [&] { return make_vanilla(problem); });
      bench.add_algorithm<SequenceParallelBlock<T>>("sequence_parallel", problem);
      bench.add_algorithm<OverlappedBlock<T>>("overlapped", problem);
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
