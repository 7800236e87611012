// Random orders of events, for tests that run on any GPUs.
#pragma once

#include <functional>

namespace overlap {

/// Runs `test` in time order and, on virtual GPUs, in a few random orders. Once on real GPUs and with the
/// race detector, whose reports do not depend on the order.
void in_schedules(const std::function<void()>& test);

}  // namespace overlap
