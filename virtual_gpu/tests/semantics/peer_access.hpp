// Peer access for the duration of a scenario.
#pragma once

#include "gpu_test.hpp"

namespace semantics {

/// Device `from` may access the memory of device `to` during this object's lifetime.
class PeerAccess {
 public:
  PeerAccess(int from, int to) : from_(from), to_(to) {
    const OnDevice on(from_);
    require(cudaDeviceEnablePeerAccess(to_, 0));
  }
  ~PeerAccess() {
    const OnDevice on(from_);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(to_), cudaSuccess);
  }

 private:
  int from_, to_;
};

}  // namespace semantics
