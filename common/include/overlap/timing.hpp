// Times: summaries of samples, and the host's clock.
#pragma once

#include <vector>

namespace overlap {

/// What several samples (milliseconds, or any other unit) say.
struct Summary {
  double median = 0;  ///< the middle sample; the mean of the two middle ones if their number is even
  double p99 = 0;     ///< 99 % of the samples are at most this (nearest rank: always one of the samples)
  double min = 0;
  double max = 0;
  int samples = 0;
};

/// Throws std::invalid_argument if there is no sample, or if one is not a number.
Summary summarise(std::vector<double> samples);

/// A stop watch on the host. On virtual GPUs it shows modelled time, as the GPUs' events do.
class HostTimer {
 public:
  /// Starts.
  HostTimer();

  /// Milliseconds since the start.
  double milliseconds() const;

 private:
  double start_ms_;
};

}  // namespace overlap
