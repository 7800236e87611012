#include "overlap/bench/timing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace overlap {

Summary summarise(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("summarise: there is no sample");
  // Sorting with NaN is undefined, because NaN has no order.
  if (std::any_of(samples.begin(), samples.end(), [](double x) { return std::isnan(x); })) {
    throw std::invalid_argument("summarise: a sample is not a number");
  }
  std::sort(samples.begin(), samples.end());
  const std::size_t count = samples.size();
  const std::size_t middle = count / 2;
  // Nearest rank: the smallest sample such that at least 99 % of all are at most as large; rank ceil(0.99
  // count), from 1, in integers.
  const std::size_t rank99 = (count * 99 + 99) / 100;
  Summary summary;
  summary.median = count % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  summary.p99 = samples[rank99 - 1];
  summary.min = samples.front();
  summary.max = samples.back();
  summary.samples = static_cast<int>(count);
  return summary;
}

}  // namespace overlap
