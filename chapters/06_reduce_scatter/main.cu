// Chapter 06: GEMM and reduce-scatter: by NCCL, by rotating accumulators, and by all-to-all and one sum.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::reduce_scatter {
namespace {

const ChapterInfo kChapter = scatter_chapter({
    .name = "06_reduce_scatter",
    .summary =
        "C = X W, X by columns, W by rows: each rank gets its rows of the sum, while products still run.",
});

/// The planner's rule for rotating accumulators.
template <typename Accumulator>
Plan<DenseCall> rotation(Start start = Start::kFirstPartial) {
  return {.steps = [start](const DenseCall& call) -> std::vector<Step> {
    const bool stores = RotatingAccumulators<__half>::usual_pass(call.ranks) == Pass::kStore;
    return {{"rotation",
             {{"accumulator_size", std::int64_t{sizeof(Accumulator)}},
              {"zeros", std::int64_t{start == Start::kZeros}},
              {"stores", std::int64_t{stores}}}}};
  }};
}

constexpr auto kVariants = []<Floating T>(DenseTable<ScatterProblem<T>>& table) {
  const Plan<DenseCall> nccl = {.steps = [](const DenseCall&) {
    return std::vector<Step>{{"products"}, {"collective"}};
  }};
  table.add("nccl", algorithm<MultiplyThenScatter<T>>(), nccl);
  table.add("rotating", algorithm<RotatingAccumulators<T>>(), rotation<T>());
  table.add("rotating_f32", algorithm<RotatingAccumulators<T, float>>(), rotation<float>());
  table.add("rotating_zero_filled", algorithm<RotatingAccumulators<T>>(Start::kZeros),
            rotation<T>(Start::kZeros));
  table.add("all_to_all", algorithm<AllToAllSum<T>>(), dense_plan("send_and_sum"));
  // Parts of all_to_all alone: the cost of splitting the GEMM, and the time of the transfers.
  const auto products = [](auto& parts, auto& data, auto stream) {
    parts.run_products(data.a(), data.b(), stream);
  };
  table.add("split_only", part<AllToAllSum<T>>(Role::kPart, products));
  const auto transfers = [](auto& parts, auto&, auto stream) { parts.run_transfers(stream); };
  table.add("communication_only", part<AllToAllSum<T>>(Role::kCommunication, transfers));
};

}  // namespace
}  // namespace overlap::reduce_scatter

int main(int argc, char** argv) {
  using namespace overlap::reduce_scatter;
  return overlap::dense_chapter_main<overlap::ScatterProblem>(argc, argv, kChapter, kVariants);
}
