// Chapter 07: an MLP block over several GPUs by tensor parallelism, by tensor and sequence parallelism, and
// the latter with its communication hidden.
//
// The three sizes: --m tokens, --n feed-forward size, --k hidden size.
#include "07_mlp_block/overlapped_block.cuh"
#include "07_mlp_block/sequence_block.cuh"
#include "07_mlp_block/vanilla_block.cuh"
#include "overlap/bench/mlp_problem.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::mlp_block {
namespace {

const ChapterInfo kChapter = gather_chapter({
    .name = "07_mlp_block",
    .summary = "Y = X + act(norm(X) W1) W2: m tokens, feed-forward size n, hidden size k.",
    .variants = {"vanilla", "sequence_parallel", "overlapped"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus = {.shape = {8192, 28672, 8192}, .gpus = 16, .iterations = 30, .warmup = 5},
});

/// The only block with all of X and Y on every rank is the vanilla one.
template <Floating T>
void add_variants(DenseBench& bench, MlpProblem<T>& problem) {
  const auto on_whole = [](auto& block, auto& data, cudaStream_t stream) {
    block.run(data.whole_x(), data.b(), data.whole_y(), stream);
  };
  bench.add_part<VanillaBlock<T>>("vanilla", Role::kAlgorithm, problem, on_whole);
  bench.add_algorithm<SequenceParallelBlock<T>>("sequence_parallel", problem);
  bench.add_algorithm<OverlappedBlock<T>>("overlapped", problem);
}

void run(const Options& options, Report& report) {
  run_dense_chapter<MlpProblem>(options, report,
                                [](DenseBench& bench, auto& problem) { add_variants(bench, problem); });
}

}  // namespace
}  // namespace overlap::mlp_block

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::mlp_block::kChapter, overlap::mlp_block::run);
}
