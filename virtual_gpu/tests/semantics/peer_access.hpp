// Peer access for the duration of a scenario.
#pragma once

#include "gpu_test.hpp"

namespace semantics {

/// Device `from` may access the memory of device `to` during this object's lifetime.
class PeerAccess {
 public:
  PeerAccess(int from, int to) : from_(from), to_(to) {
    on(from_, [this] { return cudaDeviceEnablePeerAccess(to_, 0); });
  }
  ~PeerAccess() {
    EXPECT_NO_THROW(on(from_, [this] { return cudaDeviceDisablePeerAccess(to_); }));
  }

 private:
  template <class Call>
  static void on(int device, Call call) {
    int current = 0;
    require(cudaGetDevice(&current));
    require(cudaSetDevice(device));
    require(call());
    require(cudaSetDevice(current));
  }
  int from_, to_;
};

}  // namespace semantics
