// Shared by the programs with planted bugs: two kernels, and the command line
//   PROGRAM CASE bug|fixed SEED|time, or PROGRAM --list
// SEED selects a random schedule, time the order of modelled time. If no report stops the program, it prints
// the hash of its schedule.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "vgpu/control.hpp"

namespace planted {

inline constexpr int kCount = 256;
inline constexpr std::size_t kBytes = kCount * sizeof(int);

__global__ void fill(int* data, int value) { data[threadIdx.x] = value + static_cast<int>(threadIdx.x); }

__global__ void add(const int* from, int* to) { to[threadIdx.x] += from[threadIdx.x]; }

/// `fixed` runs the correct program instead of the bug.
using Case = std::function<void(bool fixed)>;
using Cases = std::map<std::string, Case>;

/// The whole of main(). If `gpus` is given, an optional fourth argument sets it. Returns the exit status: 2
/// for a wrong command line or a failed call.
inline int run_case(int argc, char** argv, const Cases& cases, int* gpus = nullptr) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto& [name, run] : cases) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (argc < 4 || argc > (gpus == nullptr ? 4 : 5) || !cases.contains(argv[1])) {
    std::fprintf(stderr, "usage: %s CASE bug|fixed SEED|time%s, or --list\n", argv[0],
                 gpus == nullptr ? "" : " [GPUS]");
    return 2;
  }
  try {
    const std::string seed = argv[3];
    if (seed != "time") vgpu::use_schedule(std::stoull(seed));
    if (argc == 5) *gpus = std::stoi(argv[4]);
    cases.at(argv[1])(std::strcmp(argv[2], "fixed") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s; %s\n", error.what(), vgpu::last_error_detail().c_str());
    return 2;
  }
  std::printf("hash %016llx\n", static_cast<unsigned long long>(vgpu::schedule_hash()));
  return 0;
}

}  // namespace planted
