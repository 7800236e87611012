// Experiment of chapter 08: one dense buffer added up over all ranks, by NCCL and through the host. How much
// of the difference between the chapter's two algorithms is the path?
#include "08_sparse_baselines/experiments/transport_bench.cuh"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_baselines {
namespace {

const ChapterInfo kExperiment = sparse_chapter({
    .name = "08_sparse_baselines/transport",
    .summary = "One dense buffer, added up over all ranks by NCCL and through the host.",
    .variants = {"nccl", "through_host"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {1000, 32, 60}, .duplicates = 6},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {131072, 2048, 1}},
});

void run(const Options& options, Report& report) {
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<float, __half, __nv_bfloat16>(options.type, [&](auto tag) {
      TransportBench<typename decltype(tag)::type> bench(rank, options);
      bench.template add<NcclTransport>("nccl");
      bench.template add<HostTransport>("through_host");
      bench.time();
      bench.print();
      bench.save(report);
      if (rank.id() == 0 && (bench.times_of("nccl") || bench.times_of("through_host"))) print_topology(rank);
    });
  });
}

}  // namespace
}  // namespace overlap::sparse_baselines

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::sparse_baselines::kExperiment,
                               overlap::sparse_baselines::run);
}
