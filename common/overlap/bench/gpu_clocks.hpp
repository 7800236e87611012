// Clocks, power and temperature of all GPUs right before and right after a measurement. Without them two
// times cannot be compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "overlap/gpu/backend.hpp"

namespace overlap {

class Rank;

/// The state of each rank's GPU, the same on all ranks. Collective. Virtual GPUs say nothing: it is empty,
/// and nothing happens.
std::vector<backend::GpuState> gpu_states(Rank& rank);

/// The least and the largest value of several GPUs.
struct MinMax {
  double min = 0;  ///< the least
  double max = 0;  ///< the largest
};

/// The GPUs' samples: least and largest value of each; empty where no GPU reported it.
struct GpuClocks {
  /// At a moment.
  struct Sample {
    std::optional<MinMax> sm_clock_mhz;   ///< of the multiprocessors
    std::optional<MinMax> power_w;        ///< drawn by the whole board
    std::optional<MinMax> temperature_c;  ///< of the GPU
  };
  Sample before;                                    ///< right before the timed part
  Sample after;                                     ///< right after it
  std::optional<double> power_limit_w;              ///< the lowest one
  std::vector<std::pair<std::string, int>> slowed;  ///< by what, and how many GPUs, right after
  int gpus = 0;                                     ///< that were asked

  /// None of the GPUs said anything.
  bool unknown() const;
  /// For people: "clock 1980 -> 1755 MHz, power 690 of 700 W, 64 C; clocks held down by power on 2 of 4
  /// GPUs"; empty if it is unknown.
  std::string line() const;
};

/// Of the states of all GPUs before and after.
GpuClocks clocks_of(std::span<const backend::GpuState> before, std::span<const backend::GpuState> after);

}  // namespace overlap
