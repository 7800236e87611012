// Random orders of events, for tests that run on any GPUs.
#pragma once

#include <functional>

namespace overlap {

/// Runs `test` in the order of time and, on virtual GPUs, in a few random orders; afterwards the order of
/// time is back. On real GPUs and with the race detector, whose reports do not depend on the order: once.
void in_schedules(const std::function<void()>& test);

}  // namespace overlap
