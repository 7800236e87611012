#include "replay_case.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "operands.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap::teaching {
namespace {

constexpr std::int64_t kMostSize = 4096;
constexpr int kMostGpus = 16;
constexpr int kMostCalls = 8;

}  // namespace

const AlgorithmEntry& ReplayCase::entry() const {
  const auto& all = chapter_algorithms().algorithms;
  if (algorithm.empty()) return all.front();
  const auto found = std::ranges::find(all, algorithm, &AlgorithmEntry::name);
  if (found != all.end()) return *found;
  std::string names;
  for (const AlgorithmEntry& entry : all) names += (names.empty() ? "" : ", ") + entry.name;
  throw UsageError("--only: there is no algorithm '" + algorithm + "'; there are " + names);
}

LogCase ReplayCase::known() const { return log_case(entry().sharing, shape, gpus, calls, type); }

std::optional<ReplayCase> read_case(int argc, const char* const* argv, bool judges) {
  ReplayCase wanted;
  CLI::App app(judges ? "Makes the calls of a log again, on data of its own, and judges what they do."
                      : "Runs an algorithm of a chapter on virtual GPUs and writes its calls to a log.");
  app.add_option("log", wanted.log, "the log's file")->required();
  app.add_option("--only", wanted.algorithm, "the algorithm; the chapter's first unless it is given");
  const auto size = CLI::Range(std::int64_t{1}, kMostSize);
  app.add_option("--m", wanted.shape.m, "rows of A and C")->required()->check(size);
  app.add_option("--n", wanted.shape.n, "columns of B and C")->required()->check(size);
  app.add_option("--k", wanted.shape.k, "columns of A, rows of B")->required()->check(size);
  app.add_option("--gpus", wanted.gpus, "virtual GPUs, a rank on each")->check(CLI::Range(1, kMostGpus));
  app.add_option("--calls", wanted.calls, "calls in a row")->check(CLI::Range(1, kMostCalls));
  const std::map<std::string, ElementType> types = {
      {"f16", ElementType::kF16}, {"bf16", ElementType::kBf16}, {"f32", ElementType::kF32}};
  std::string type = "f16";
  app.add_option("--type", type, "of the elements: f16, bf16, f32")->check(CLI::IsMember(types));
  if (judges) {
    app.add_option("--seed", wanted.seed, "of A and B, which the log's writer does not know");
    app.add_option("--schedule", wanted.schedule, "a random order of all operations, from this seed");
    app.add_option("--seconds", wanted.seconds, "the longest that the replay may take")
        ->check(CLI::Range(1, 3600));
    app.add_flag("--json", wanted.json, "the verdict as JSON");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  wanted.type = types.at(type);
  wanted.entry();
  return wanted;
}

}  // namespace overlap::teaching
