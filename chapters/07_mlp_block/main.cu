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
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus = {.shape = {8192, 28672, 8192}, .gpus = 16, .iterations = 30, .warmup = 5},
});

/// A planner's rule for one of the two GEMMs, with this cost card.
Step for_product(std::int64_t product, const char* rule, const Cost& cost = {.products = 1}) {
  return {rule,
          {{"product", product},
           {"messages", cost.messages},
           {"bytes_out", cost.bytes_out},
           {"products", cost.products},
           {"launches", cost.launches}}};
}

/// Normalising reads and writes `rows` tokens, activating the inner layer; adding the residual reads two and
/// writes one. Then what `steps` are.
std::vector<Step> behind_kernels(const DenseCall& call, std::int64_t rows, std::vector<Step> steps) {
  const std::int64_t size = sizeof(__half), tokens = size * rows * call.whole.k;
  const std::int64_t inner = size * call.whole.m * balanced_share(call.whole.n, call.ranks, 0).size();
  for (const std::int64_t bytes : {2 * tokens, 2 * inner, 3 * tokens})
    steps.insert(steps.begin(), {"kernel", {{"bytes", bytes}}});
  return steps;
}

std::vector<Step> vanilla(const DenseCall& call) {
  const std::vector<Step> steps = {for_product(0, "products"), for_product(1, "products"), {"collective"}};
  return behind_kernels(call, call.whole.m, steps);
}

std::vector<Step> sequence_parallel(const DenseCall& call) {
  const Step all_gather_and_reduce_scatter = {"collective", {{"times", 2}}};
  return behind_kernels(
      call, balanced_share(call.whole.m, call.ranks, 0).size(),
      {for_product(0, "products"), for_product(1, "products"), all_gather_and_reduce_scatter});
}

template <Floating T>
std::vector<Step> overlapped(const DenseCall& call) {
  const auto [m, n, k] = call.whole;
  Step gather = for_product(0, "copy_ring", two_streams::RingTwoStreams<T>::cost(call.whole, call.ranks, 0));
  gather.numbers.emplace_back("streams", 2);
  const Cost scatter = reduce_scatter::AllToAllSum<T>::cost({m, k, n}, call.ranks, 0);
  return behind_kernels(call, balanced_share(m, call.ranks, 0).size(),
                        {gather, for_product(1, "send_and_sum", scatter)});
}

constexpr auto kVariants = []<Floating T>(DenseTable<MlpProblem<T>>& table) {
  // The only block with all of X and Y on every rank.
  const auto on_whole = [](auto& block, auto& data, cudaStream_t stream) {
    block.run(data.whole_x(), data.b(), data.whole_y(), stream);
  };
  table.add("vanilla", part<VanillaBlock<T>>(Role::kAlgorithm, on_whole), {.steps = vanilla});
  table.add("sequence_parallel", algorithm<SequenceParallelBlock<T>>(), {.steps = sequence_parallel});
  table.add("overlapped", algorithm<OverlappedBlock<T>>(), {.steps = overlapped<T>});
};

}  // namespace
}  // namespace overlap::mlp_block

int main(int argc, char** argv) {
  using namespace overlap::mlp_block;
  return overlap::dense_chapter_main<overlap::MlpProblem>(argc, argv, kChapter, kVariants);
}
