// Work of the host on all its hardware threads.
#pragma once

#include <cstdint>
#include <functional>

#include "overlap/gpu/shape.hpp"

namespace overlap {

/// The smallest share that is worth a thread if each index costs `steps` of about a nanosecond: an element
/// read or written, a few multiply-adds. A thread costs 30 to 60 microseconds, one after the other for all
/// threads of a process: their stacks come from the same address space. Measured with 2 x H100 and 32 cores:
/// tests that started a thread for every few rows spent two thirds of their time on it.
std::int64_t worth_a_thread(std::int64_t steps);

/// Calls `work` once for each of several contiguous, non-empty shares of 0 ... total - 1, at the same time on
/// all hardware threads, and returns when all are done. Shares hold `smallest_share` indices or more, if
/// there are so many: see worth_a_thread(). `work` must not call CUDA. If shares throw, the exception of the
/// first of them is rethrown here, after all threads have ended.
void parallel_shares(std::int64_t total, const std::function<void(Range)>& work, std::int64_t smallest_share);

}  // namespace overlap
