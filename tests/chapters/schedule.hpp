// Random orders of events, for tests that run on any GPUs.
#pragma once

#include <cstdint>
#include <vector>

namespace overlap {

/// The schedules that a test runs: on virtual GPUs 0, the order of time, and seeds of random ones; 0 alone on
/// real GPUs, which take the order that they take, and with the race detector.
std::vector<std::uint64_t> schedules_to_try();

/// What follows runs in this schedule, on virtual GPUs as they were at the start of the program.
void use_schedule(std::uint64_t schedule);

}  // namespace overlap
