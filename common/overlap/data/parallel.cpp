#include "overlap/data/parallel.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace overlap {

std::int64_t worth_a_thread(std::int64_t steps) {
  constexpr std::int64_t kSteps = 1 << 18;  // a quarter of a millisecond: several times what a thread costs
  return std::max<std::int64_t>(1, kSteps / std::max<std::int64_t>(1, steps));
}

void parallel_shares(std::int64_t total, const std::function<void(Range)>& work,
                     std::int64_t smallest_share) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t shares = std::max<std::int64_t>(std::min<std::int64_t>(total, 1),
                                                     total / std::max<std::int64_t>(1, smallest_share));
  const auto threads = static_cast<int>(std::min(cores, shares));
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(std::max(threads, 0)));

  // An exception that leaves a thread ends the process, so each share keeps its own.
  const auto run_share = [&](int index) {
    try {
      work(balanced_share(total, threads, index));
    } catch (...) {
      failures[static_cast<std::size_t>(index)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;  // joined at the end of this block, also if a thread cannot be started
    for (int index = 1; index < threads; ++index) helpers.emplace_back(run_share, index);
    if (threads > 0) run_share(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace overlap
