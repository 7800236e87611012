// Experiment of chapter 18: both kernels with other tiles, stages and orders of tiles.
#include <string>

#include "16_tensor_core_gemm/program.hpp"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::ring_in_kernel {
namespace {

/// One choice, and its name: kernel, rows x columns, stages, minor side with the width of its strips,
/// senders.
template <template <typename, typename> class Kernel, int M, int N, int Stages, Minor Side, int Width,
          int Senders>
struct Choice {
  using Tile = tensor_core_gemm::Tile<M, N, Stages>;
  static std::string name(const std::string& kernel) {
    return kernel + "_" + std::to_string(M) + "x" + std::to_string(N) + "_" + std::to_string(Stages) +
           (Side == Minor::kM ? "_m" : "_n") + std::to_string(Width) + "_by" + std::to_string(Senders);
  }
  template <SixteenBit T>
  static void add(DenseTable<GatherProblem<T>>& table, const std::string& kernel) {
    table.add(name(kernel), algorithm<Kernel<T, Tile>>(Tuning{Side, Width, Senders}));
  }
};

/// All choices for one kernel.
template <template <typename, typename> class Kernel, typename... Each>
struct Choices {
  template <SixteenBit T>
  static void add(DenseTable<GatherProblem<T>>& table, const std::string& kernel) {
    (Each::add(table, kernel), ...);
  }
};

template <template <typename, typename> class K>
using ForKernel =
    Choices<K, Choice<K, 128, 256, 4, Minor::kM, 8, 16>, Choice<K, 128, 256, 4, Minor::kM, 8, 4>,
            Choice<K, 128, 256, 4, Minor::kM, 8, 1>, Choice<K, 128, 256, 4, Minor::kN, 8, 16>,
            Choice<K, 128, 256, 4, Minor::kM, 1, 16>, Choice<K, 128, 256, 3, Minor::kM, 8, 16>,
            Choice<K, 128, 128, 6, Minor::kM, 8, 16>, Choice<K, 64, 256, 5, Minor::kM, 8, 16>>;

const ChapterInfo kExperiment = {
    .name = "18_ring_in_kernel/search",
    .summary = "Both kernels with other tiles, numbers of stages and orders of tiles.",
    .on_virtual_gpus = {.shape = {0, 0, 128}, .per_gpu = {256, 512, 0}, .gpus = 2, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 20, .warmup = 3},
    .on_race_build = {{.shape = {0, 0, 72}, .per_gpu = {24, 32, 0}, .gpus = 2, .iterations = 1}},
    .types = {ElementType::kF16},
};

constexpr auto kVariants = [](DenseTable<GatherProblem<__half>>& table) {
  ForKernel<RingInKernel>::add(table, "in");
  ForKernel<RingAhead>::add(table, "ahead");
};

}  // namespace
}  // namespace overlap::ring_in_kernel

int main(int argc, char** argv) {
  using namespace overlap::ring_in_kernel;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
