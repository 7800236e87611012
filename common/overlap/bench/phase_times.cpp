#include "overlap/bench/phase_times.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace overlap::detail {
namespace {

constexpr const char* kAllReduce = "all_reduce";

/// The time of a call in the phase of that name.
double milliseconds_of(const std::vector<Phase>& call, const std::string& name) {
  double ms = 0;
  for (const Phase& phase : call) ms += phase.name == name ? phase.ms : 0;
  return ms;
}

/// The time from the begin of the call until a rank reaches the all-reduce.
double arrival_at_all_reduce(const std::vector<Phase>& call) {
  double ms = 0;
  for (const Phase& phase : call) {
    if (phase.name == kAllReduce) break;
    ms += phase.ms;
  }
  return ms;
}

/// The phases of all ranks together, because a rank without rows has fewer.
std::vector<std::string> names_of_phases(const std::vector<const PhasesOfCalls*>& ranks) {
  std::vector<std::string> names;
  for (const PhasesOfCalls* calls : ranks) {
    for (const Phase& phase : calls->front()) {
      if (std::find(names.begin(), names.end(), phase.name) == names.end()) names.push_back(phase.name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kAllReduce; });
  return names;
}

/// The median over all calls of `of_ranks`, applied to each rank's `of_call`.
template <typename OfCall, typename OfRanks>
double median(const std::vector<const PhasesOfCalls*>& ranks, const OfCall& of_call,
              const OfRanks& of_ranks) {
  std::vector<double> samples;
  for (std::size_t call = 0; call < ranks.front()->size(); ++call) {
    std::vector<double> values;
    for (const PhasesOfCalls* calls : ranks) values.push_back(of_call((*calls)[call]));
    samples.push_back(of_ranks(std::as_const(values)));
  }
  return summarise(std::move(samples)).median;
}

}  // namespace

void summarise_phases(const std::vector<const PhasesOfCalls*>& ranks, VariantTimes& times) {
  const auto least = [](const std::vector<double>& values) { return std::ranges::min(values); };
  const auto largest = [](const std::vector<double>& values) { return std::ranges::max(values); };
  for (const std::string& name : names_of_phases(ranks)) {
    const auto in_phase = [&](const std::vector<Phase>& call) { return milliseconds_of(call, name); };
    times.phases.push_back(
        {name, name == kAllReduce ? median(ranks, in_phase, least) : median(ranks, in_phase, largest)});
  }
  times.skew_ms = median(ranks, arrival_at_all_reduce,
                         [&](const auto& values) { return largest(values) - least(values); });
}

}  // namespace overlap::detail
