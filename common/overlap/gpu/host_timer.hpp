// The host's clock.
#pragma once

namespace overlap {

/// A stop watch on the host. On virtual GPUs it shows modelled time, as the GPUs' events do.
class HostTimer {
 public:
  HostTimer();

  /// Milliseconds since the start.
  double milliseconds() const;

 private:
  double start_ms_;
};

}  // namespace overlap
