// Experiment of chapter 05: when two streams help, and by how much: the same GEMMs over a range of m, with
// one stream and with two, with transfers and without.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "05_two_streams/experiments/sweep.cuh"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::two_streams {
namespace {

const ChapterInfo kExperiment = gather_chapter({
    .name = "05_two_streams/sweep",
    .summary = "What a second stream gains, over a range of m: as waves and as times.",
    .variants = {"sweep"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
});

/// For each factor: times all variants with m times the factor, prints a line, and adds a result to the
/// report. Compares the C of each variant's last timed call with that of GEMM only. Throws Skip if the ring
/// cannot run. Collective.
template <Floating T>
void sweep(Rank& rank, Options options, const std::vector<double>& factors, Report& report) {
  options.variants = {"copy_engine_ring", "ring_two_streams", "split_one", "split_two", "transfers"};
  options.timeline.clear();
  ResultTable table = sweep_table();
  for (const double factor : factors) {
    MatmulShape whole = options.shape;
    whole.m = std::max<std::int64_t>(1, static_cast<std::int64_t>(factor * static_cast<double>(whole.m)));
    GatherProblem<T> problem(rank, whole, options.seed);
    if (factor == 1) print_problem(problem);
    DenseBench bench(problem, options);
    add_variants(bench, problem);
    bench.time(false);
    if (bench.times_of("ring_two_streams") == nullptr) throw Skip("without the ring there is no sweep");
    if (rank.id() == 0) add_row(table, bench);
  }
  if (rank.id() != 0) return;
  table.finish("\n" + modelled("Ring on one stream and on two, over m; times by GEMM only's") + "\n", report);
}

void run(const Options& options, Report& report) {
  // Factors of the requested m; fewer on virtual GPUs, where the CPU multiplies.
  const std::vector<double> factors = backend::modelled_time()
                                          ? std::vector<double>{1, 2, 4}
                                          : std::vector<double>{0.125, 0.25, 0.5, 1, 2, 4};
  run_dense_ranks(options, [&](auto tag, Rank& rank) {
    sweep<typename decltype(tag)::type>(rank, options, factors, report);
  });
}

}  // namespace
}  // namespace overlap::two_streams

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::two_streams::kExperiment, overlap::two_streams::run);
}
