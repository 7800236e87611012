// Experiment of chapter 05: times the five openings of the pull: the copy that publishes the shard, and the
// barrier, before, beside or after the first GEMM.
#include <array>
#include <string>
#include <utility>

#include "05_two_streams/experiments/openings.cuh"
#include "overlap/gpu/timeline.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::two_streams {
namespace {

const ChapterInfo kExperiment = gather_chapter({
    .name = "05_two_streams/openings",
    .summary = "The five openings of the pull: copy and barrier before, beside or after the first GEMM.",
    .variants = {"before", "beside", "copy_first", "after", "barrier_after"},
    .on_virtual_gpus = {.shape = {0, 0, 256}, .per_gpu = {128, 640, 0}, .gpus = 4, .iterations = 1},
});

constexpr std::array<std::pair<const char*, Opening>, 5> kOpenings = {
    {{"before", Opening::kBefore},
     {"beside", Opening::kBeside},
     {"copy_first", Opening::kCopyFirst},
     {"after", Opening::kAfter},
     {"barrier_after", Opening::kBarrierAfter}}};

/// For each opening: times the pull, compares its result with the right one, prints a line, and adds a result
/// to the report. With --timeline each opening is a section of the timeline. Collective.
template <Floating T>
void compare(GatherProblem<T>& problem, Options options, Report& report) {
  const bool timeline = !options.timeline.empty();
  options.timeline.clear();  // drawn below, without GEMM only
  DenseBench bench(problem, options);
  for (const auto& [name, opening] : kOpenings)
    bench.add(name, algorithm<PullWithOpening<T>>(opening), problem);
  bench.verify();
  bench.time(false);
  Rank& rank = problem.rank();
  for (const auto& [name, opening] : kOpenings) {
    if (!timeline || !options.runs(name)) continue;
    PullWithOpening<T> pull(rank, problem.whole(), opening);
    rank.barrier();
    const TimelineSection section("pull, opening " + std::string(name));
    pull.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
  }
  if (rank.id() != 0) return;
  const double alone = bench.times_of("gemm_only")->device_ms.median;
  ResultTable table(
      {{"opening", "opening"}, {"us", "device_ms", microseconds()}, {"x GEMM only", "ratio_to_gemm_only"}});
  for (const auto& [name, opening] : kOpenings) {
    if (bench.times_of(name) == nullptr) continue;
    const double ms = bench.times_of(name)->device_ms.median;
    table.add({{"section", std::string("openings")},
               {"opening", std::string(name)},
               {"gpus", std::int64_t{rank.size()}},
               {"device_ms", ms},
               {"ratio_to_gemm_only", ms / alone}});
  }
  table.finish("\n" + modelled("Pull: local copy and barrier, seen from the first product") + "\n", report);
}

void run(const Options& options, Report& report) {
  run_dense_problem<GatherProblem>(options, [&](auto& problem) { compare(problem, options, report); });
}

}  // namespace
}  // namespace overlap::two_streams

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::two_streams::kExperiment, overlap::two_streams::run);
}
