// Experiment of chapter 05: when a rank publishes its shard and meets the others, as seen from its first
// product: the five openings of the pull, side by side.
#include <array>
#include <iostream>
#include <string>
#include <utility>

#include "05_two_streams/pull_two_streams.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/table.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/timeline.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kExperiment = {
    .name = "05_two_streams/openings",
    .summary = "The five openings of the pull: local copy and barrier, seen from the first product.",
    .variants = {"before", "beside", "copy_first", "after", "barrier_after"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
    .on_real_gpus =
        {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
    .on_race_build = {{.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}},
    .types = {ElementType::kF16, ElementType::kBf16, ElementType::kF32},
    .default_type = ElementType::kF16,
    .ranks_may_share_gpus = true,
};

constexpr std::array<std::pair<const char*, Opening>, 5> kOpenings = {
    {{"before", Opening::kBefore},
     {"beside", Opening::kBeside},
     {"copy_first", Opening::kCopyFirst},
     {"after", Opening::kAfter},
     {"barrier_after", Opening::kBarrierAfter}}};

/// Times the pull with each of its openings, compares all of their results, prints one line for each and adds
/// one result. With --timeline each is a section. Collective.
template <Floating T>
void compare(GatherProblem<T>& problem, Options options, Report& report) {
  const bool timeline = !options.timeline.empty();
  options.timeline.clear();  // drawn below, without GEMM only
  DenseBench bench(problem, options);
  for (const auto& [name, opening] : kOpenings)
    bench.add_algorithm<PullTwoStreams<T>>(name, problem, opening);
  bench.verify();
  bench.time(false);
  Rank& rank = problem.rank();
  for (const auto& [name, opening] : kOpenings) {
    if (!timeline || !options.runs(name)) continue;
    PullTwoStreams<T> pull(rank, problem.whole(), opening);
    rank.barrier();
    const TimelineSection section("pull, opening " + std::string(name));
    pull.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
  }
  if (rank.id() != 0) return;
  const double alone = bench.times_of("gemm_only")->device_ms.median;
  Table table({"opening", "us", "x GEMM only"});
  for (const auto& [name, opening] : kOpenings) {
    if (bench.times_of(name) == nullptr) continue;
    const double ms = bench.times_of(name)->device_ms.median;
    table.add_row({name, fixed(1e3 * ms, 1), fixed(ms / alone, 3)});
    report.add_result({{"section", std::string("openings")},
                       {"opening", std::string(name)},
                       {"gpus", std::int64_t{rank.size()}},
                       {"device_ms", ms},
                       {"ratio_to_gemm_only", ms / alone}});
  }
  std::cout << "\nPull: local copy and barrier, seen from the first product"
            << (backend::modelled_time() ? " (modelled)" : "") << "\n"
            << table;
}

void run(const Options& options) {
  Report report(kExperiment, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) {
      GatherProblem<typename decltype(tag)::type> problem(rank, options.shape, options.seed);
      print_shares(problem);
      compare(problem, options, report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::kExperiment, overlap::run);
}
