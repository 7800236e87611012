// Experiment of chapter 16: the rung `tma_store` with other tiles and numbers of stages, clusters of two
// blocks by multicast, and k split over clusters.
#include <string>

#include "16_tensor_core_gemm/experiments/clusters.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/program.hpp"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::tensor_core_gemm {
namespace {

/// A variant of tma_store: ROWSxCOLUMNS_STAGES.
template <int M, int N, int Stages>
struct Named {
  using Product = TensorCoreGemm<__half, StoredByTma<Tile<M, N, Stages>>>;
  static std::string name() {
    return std::to_string(M) + "x" + std::to_string(N) + "_" + std::to_string(Stages);
  }
};

/// Two blocks load B for each other; see clusters.cuh.
template <int kM, int kN, int kStages>
struct Pairs {
  using Product = TensorCoreGemm<__half, ClusterMulticast<Tile<kM, kN, kStages>>>;
  static std::string name() { return "pairs_" + Named<kM, kN, kStages>::name(); }
};

/// Four blocks share the k of a tile.
struct Split {
  using Product = TensorCoreGemm<__half, SplitK>;
  static std::string name() { return "split_128x128_5"; }
};

struct Fits {
  using Product = FittingGemm<__half>;
  static std::string name() { return Product::kName; }
};

const ChapterInfo kExperiment = {
    .name = "16_tensor_core_gemm/tiles",
    .summary = "The rung tma_store with other tiles and numbers of stages, pairs of blocks, and k split.",
    .on_virtual_gpus = {.shape = {512, 512, 512}, .gpus = 1, .iterations = 1, .warmup = 0},
    .on_real_gpus = {.shape = {8192, 8192, 8192}, .gpus = 1, .iterations = 20, .warmup = 3},
    .on_race_build = {{.shape = {130, 136, 112}, .gpus = 1, .iterations = 1, .warmup = 0}},
    .types = {ElementType::kF16},
};

template <typename... Each>
void add(DenseTable<GatherProblem<__half>>& table) {
  (table.add(Each::name(), product<typename Each::Product>()), ...);
}

constexpr auto kVariants = [](DenseTable<GatherProblem<__half>>& table) {
  add<Named<128, 256, 2>, Named<128, 256, 3>, Named<128, 256, 4>, Named<128, 128, 4>, Named<128, 128, 6>,
      Named<64, 256, 4>, Named<64, 256, 5>, Named<64, 128, 8>, Named<64, 64, 8>, Pairs<128, 256, 4>,
      Pairs<64, 128, 8>, Split, Fits>(table);
};

}  // namespace
}  // namespace overlap::tensor_core_gemm

int main(int argc, char** argv) {
  using namespace overlap::tensor_core_gemm;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
