#include <gtest/gtest.h>

#include <cstdlib>

#include "process.hpp"

int main(int argc, char** argv) {
  // A kernel that is loaded at its first launch may wait for running kernels, here those that block a stream
  // (Guide, "Lazy Loading"); and streams that share a hardware queue wait for each other.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  semantics::keeps_handles = true;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
