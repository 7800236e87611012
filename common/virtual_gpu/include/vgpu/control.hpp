// What a program can ask of the virtual GPUs beyond CUDA: which machine to model, which schedule to run, what
// happened.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

/// Runs operations in a random order drawn from `seed` instead of in the order of the modelled clock.
/// Only before the first CUDA call; throws std::logic_error later.
void use_schedule(std::uint64_t seed);

/// Models the machine of that name (a file in virtual_gpu/machines) or JSON file. The default is "small".
/// Only before the first CUDA call; throws std::runtime_error with one sentence.
void use_machine(const std::string& name_or_file);

/// Name of the modelled machine.
std::string machine_name();

/// The modelled host clock, in milliseconds since the start.
double host_time_ms();

/// True once a deadlock has been reported.
bool failure_reported();

/// Hash of all scheduling decisions so far. The same program with the same seed gives the same hash.
std::uint64_t schedule_hash();

/// Bytes and calls that copies have moved from one GPU to another, or from and to the host (kHost).
inline constexpr int kHost = -1;
struct Traffic {
  std::uint64_t bytes = 0;
  std::uint64_t copies = 0;
};
Traffic traffic(int from, int to);

/// One sentence on the last call that returned an error, "" if there is none: what CUDA's error code does not
/// say.
std::string last_error_detail();

/// Back to the state before the first CUDA call: destroys all virtual GPUs and what is on them. For tests;
/// every handle and pointer dies.
void reset();

}  // namespace vgpu
