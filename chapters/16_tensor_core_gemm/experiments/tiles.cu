// Experiment of chapter 16: the rung `tma_store` with other tiles and numbers of stages, clusters of two
// blocks, and the rung that with_fitting_rung() chooses.
#include <functional>
#include <memory>
#include <string>

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

/// The rung cluster_multicast with that tile.
template <int kM, int kN, int kStages>
struct Pairs {
  using Product = TensorCoreGemm<__half, ClusterMulticast<Tile<kM, kN, kStages>>>;
  static std::string name() { return "pairs_" + Named<kM, kN, kStages>::name(); }
};

/// The rung that with_fitting_rung() chooses.
class Fitting {
 public:
  Fitting(Rank& rank, MatmulShape whole)
      : run_(with_fitting_rung(share_of(whole, rank.size(), rank.id()), multiprocessors_with_wgmma(rank),
                               [&]<typename Rung>(Rung) -> Run {
                                 auto product = std::make_shared<TensorCoreGemm<__half, Rung>>(rank, whole);
                                 return [product](const __half* a, const __half* b, __half* c,
                                                  cudaStream_t stream) { product->run(a, b, c, stream); };
                               })) {}
  void run(const __half* a, const __half* b, __half* c, cudaStream_t stream) { run_(a, b, c, stream); }

 private:
  using Run = std::function<void(const __half*, const __half*, __half*, cudaStream_t)>;
  Run run_;
};

struct Fits {
  using Product = Fitting;
  static std::string name() { return "fitting"; }
};

const ChapterInfo kExperiment = {
    .name = "16_tensor_core_gemm/tiles",
    .summary = "The rung tma_store with other tiles and other numbers of stages, and pairs of blocks.",
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
      Pairs<64, 128, 8>, Fits>(table);
};

}  // namespace
}  // namespace overlap::tensor_core_gemm

int main(int argc, char** argv) {
  using namespace overlap::tensor_core_gemm;
  return overlap::dense_chapter_main<overlap::GatherProblem, __half>(
      argc, argv, kExperiment, kVariants, {.before = overlap::tensor_core_gemm::require_sizes_of});
}
