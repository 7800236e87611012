#include "overlap/bench/gpu_clocks.hpp"

#include <algorithm>
#include <array>

#include "overlap/data/text.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {
namespace {

using backend::GpuState;
using Value = std::optional<double> GpuState::*;

std::optional<MinMax> range_of(std::span<const GpuState> states, Value value) {
  std::optional<MinMax> range;
  for (const GpuState& state : states) {
    const std::optional<double> one = state.*value;
    if (!one) continue;
    if (!range) range = {*one, *one};
    *range = {std::min(range->min, *one), std::max(range->max, *one)};
  }
  return range;
}

GpuClocks::Sample sample_of(std::span<const GpuState> states) {
  return {range_of(states, &GpuState::sm_clock_mhz), range_of(states, &GpuState::power_w),
          range_of(states, &GpuState::temperature_c)};
}

std::string text_of(const MinMax& range) {
  const std::string least = fixed(range.min, 0), largest = fixed(range.max, 0);
  return least == largest ? least : least + " to " + largest;
}

}  // namespace

std::vector<GpuState> gpu_states(Rank& rank) {
  if (backend::modelled_time()) return {};  // an exchange would change the order of events
  return rank.exchange(backend::gpu_state(rank.device()).value_or(GpuState{}));
}

bool GpuClocks::unknown() const {
  const auto said = [](const Sample& sample) {
    return sample.sm_clock_mhz || sample.power_w || sample.temperature_c;
  };
  return !said(before) && !said(after);
}

std::string GpuClocks::line() const {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (before.sm_clock_mhz && after.sm_clock_mhz)
    add("clock " + text_of(*before.sm_clock_mhz) + " -> " + text_of(*after.sm_clock_mhz) + " MHz");
  if (after.power_w) {
    add("power " + text_of(*after.power_w) + (power_limit_w ? " of " + fixed(*power_limit_w, 0) : "") + " W");
  }
  if (after.temperature_c) add(text_of(*after.temperature_c) + " C");
  for (const auto& [reason, count] : slowed) {
    text += (text.empty() ? "" : "; ") + std::string("clocks held down by ") + reason + " on " +
            std::to_string(count) + " of " + std::to_string(gpus) + " GPUs";
  }
  return text;
}

GpuClocks clocks_of(std::span<const GpuState> before, std::span<const GpuState> after) {
  GpuClocks clocks;
  clocks.before = sample_of(before);
  clocks.after = sample_of(after);
  clocks.gpus = static_cast<int>(after.size());
  if (const std::optional<MinMax> limit = range_of(after, &GpuState::power_limit_w))
    clocks.power_limit_w = limit->min;
  constexpr std::array kReasons = {std::pair{"power", &GpuState::slowed_by_power},
                                   std::pair{"heat", &GpuState::slowed_by_heat},
                                   std::pair{"hardware", &GpuState::slowed_by_hardware}};
  for (const auto& [name, slowed] : kReasons) {
    const auto count = std::count_if(after.begin(), after.end(),
                                     [flag = slowed](const GpuState& state) { return state.*flag; });
    if (count > 0) clocks.slowed.emplace_back(name, static_cast<int>(count));
  }
  return clocks;
}

}  // namespace overlap
