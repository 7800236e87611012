#include "overlap/bench/phase_times.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace overlap::detail {
namespace {

constexpr const char* kAllReduce = "all_reduce";

/// How long a call was in the phase of that name.
double milliseconds_of(const std::vector<Phase>& call, const std::string& name) {
  double ms = 0;
  for (const Phase& phase : call) ms += phase.name == name ? phase.ms : 0;
  return ms;
}

/// When a rank comes to the all-reduce, after the begin of the call.
double arrival_at_all_reduce(const std::vector<Phase>& call) {
  double ms = 0;
  for (const Phase& phase : call) {
    if (phase.name == kAllReduce) break;
    ms += phase.ms;
  }
  return ms;
}

/// A rank without rows has fewer phases than the others, so the names are those of any rank.
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

/// What `of_call` says of each rank in a call, as `of_ranks` puts it, in the median of all calls.
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
