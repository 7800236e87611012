// Work of the host on all its hardware threads.
#pragma once

#include <cstdint>
#include <functional>

#include "overlap/gpu/shape.hpp"

namespace overlap {

/// Calls `work` once for each of several contiguous, non-empty shares of 0 ... total - 1, at the same time on
/// all hardware threads, and returns when all are done. Shares hold `smallest_share` or more, if there are so
/// many: a thread costs some ten microseconds. `work` must not call CUDA. If shares throw, the exception of
/// the first of them is rethrown here, after all threads have ended.
void parallel_shares(std::int64_t total, const std::function<void(Range)>& work,
                     std::int64_t smallest_share = 1);

}  // namespace overlap
