// Experiment of chapter 16: the last rung with other tiles and other numbers of stages.
#include <string>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {
namespace {

/// The tile of a variant, and its name: rows x columns, stages.
template <int M, int N, int Stages>
struct Named {
  using Rung = StoredByTma<Tile<M, N, Stages>>;
  static std::string name() {
    return std::to_string(M) + "x" + std::to_string(N) + "_" + std::to_string(Stages);
  }
};

template <typename... Each>
struct List {
  static std::vector<std::string> names() { return {Each::name()...}; }
  template <SixteenBit T>
  static void add(DenseBench& bench, GatherProblem<T>& problem) {
    (bench.add_product<TensorCoreGemm<T, typename Each::Rung>>(Each::name(), problem), ...);
  }
};
using Tiles = List<Named<128, 256, 2>, Named<128, 256, 3>, Named<128, 256, 4>, Named<128, 128, 4>,
                   Named<128, 128, 6>, Named<64, 256, 4>, Named<64, 128, 8>, Named<64, 64, 8>>;

const ChapterInfo kExperiment = {
    .name = "16_tensor_core_gemm/tiles",
    .summary = "The last rung with other tiles and other numbers of stages.",
    .variants = Tiles::names(),
    .on_virtual_gpus = {.shape = {512, 512, 512}, .gpus = 1, .iterations = 1, .warmup = 0},
    .on_real_gpus = {.shape = {8192, 8192, 8192}, .gpus = 1, .iterations = 20, .warmup = 3},
    .on_race_build = {{.shape = {130, 136, 112}, .gpus = 1, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16},
};

void run(const Options& options, Report& report) {
  require_all_sizes(options.shape, options.gpus);
  run_dense_chapter<GatherProblem, __half>(
      options, report, [](DenseBench& bench, GatherProblem<__half>& problem) { Tiles::add(bench, problem); });
}

}  // namespace
}  // namespace overlap::tensor_core_gemm

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::tensor_core_gemm::kExperiment,
                               overlap::tensor_core_gemm::run);
}
