#include "program/agreement.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

/// All that decides what the ranks do together, by the option's name. A file's name may differ.
Values values_of(const Options& options, const ChapterInfo& chapter) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string variants;
  for (const std::string& variant : options.variants) variants += (variants.empty() ? "" : ",") + variant;
  return {{"the program", chapter.name},
          {"the commit", std::string(commit())},
          {"--backend", backend::name()},
          {"--gpus", options.gpus_given ? number(options.gpus) : "not given"},
          {"--gpus-per-node", number(options.given_gpus_per_node)},
          {"--m", number(options.given_shape.m)},
          {"--n", number(options.given_shape.n)},
          {"--k", number(options.given_shape.k)},
          {"--type", name_of(options.type)},
          {"--iterations", number(options.iterations)},
          {"--warmup", number(options.warmup)},
          {"--seed", number(options.seed)},
          {"--check", options.check ? "yes" : "no"},
          {"--timeline", options.timeline.empty() ? "no" : "yes"},
          {"--only", variants}};
}

/// One value in a line.
std::string text_of(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values) text += value + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void require_the_same(const Processes& processes, const Values& values, const std::vector<std::string>& all) {
  const std::vector<std::string> first = lines_of(all.front());
  for (std::size_t process = 1; process < all.size(); ++process) {
    const std::vector<std::string> lines = lines_of(all[process]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i < lines.size() && i < first.size() && lines[i] == first[i]) continue;
      throw UsageError(values[i].first + ": processes disagree: process 0 has " +
                       (i < first.size() ? first[i] : "another version") + ", " +
                       processes.name_of(static_cast<int>(process)) + " has " +
                       (i < lines.size() ? lines[i] : "another version"));
    }
  }
}

}  // namespace

bool Options::tells() const { return processes == nullptr || processes->index() == 0; }

int gpus_of_each(const Processes& processes, int gpus, int given_per_node) {
  const int each = gpus / processes.count();
  const std::string of = std::to_string(processes.count()) + " processes, each of which is a node";
  if (each * processes.count() != gpus)
    throw UsageError("--gpus: " + std::to_string(gpus) + " cannot be shared out to " + of);
  if (given_per_node > 0 && given_per_node != each)
    throw UsageError("--gpus-per-node: " + std::to_string(given_per_node) + ", but " + std::to_string(gpus) +
                     " of --gpus are " + std::to_string(each) + " on each of " + of);
  return each;
}

void agree_on_options(Processes& processes, Options& options, const ChapterInfo& chapter, int available) {
  const Values values = values_of(options, chapter);
  const std::vector<std::string> all = processes.exchange(text_of(values));
  require_the_same(processes, values, all);
  const std::vector<std::string> gpus = processes.exchange(std::to_string(available));
  const int wanted = options.gpus / processes.count();
  for (std::size_t process = 0; process < gpus.size(); ++process) {
    const std::string who = processes.name_of(static_cast<int>(process)) + " has " + gpus[process];
    if (!options.gpus_given && gpus[process] != gpus.front())
      throw UsageError("--gpus: not given, and process 0 has " + gpus.front() + " GPUs, " + who);
    if (options.gpus_given && !backend::modelled_time() && std::atoi(gpus[process].c_str()) < wanted)
      throw UsageError("--gpus: " + std::to_string(wanted) + " of each process, and " + who);
  }
  options.use_gpus(options.gpus_given ? options.gpus : processes.count() * std::min(wanted, available),
                   chapter);
}

}  // namespace overlap
