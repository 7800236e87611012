// Phases of many calls on many ranks, as one line of a table.
#pragma once

#include <vector>

#include "overlap/bench/timing.hpp"

namespace overlap::detail {

/// The phases of each timed call on one rank.
using PhasesOfCalls = std::vector<std::vector<Phase>>;

/// Sets the phases and the skew of `times`, from those of all ranks.
void summarise_phases(const std::vector<const PhasesOfCalls*>& ranks, VariantTimes& times);

}  // namespace overlap::detail
