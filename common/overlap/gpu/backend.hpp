// All that differs, for host code, between real GPUs and virtual ones. src/gpu/backend/ holds one file for
// each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "overlap/gpu/element_type.hpp"

namespace overlap {

/// What only virtual GPUs can be asked for. Real ones take the nodes as they are.
struct BackendOptions {
  std::optional<std::uint64_t>
      schedule;              ///< seed of a random order of all operations; none: in the order of time
  std::string machine = {};  ///< a machine's name or description file; empty: the default machine
  int gpus = 0;              ///< asked for: the default machine is given as many if it has fewer
  int nodes = 0;             ///< machines, between which links are slower; 0: as the description says
  int gpus_per_node = 0;     ///< GPUs of each of them
};

/// The part of C that one thread block computes.
struct Tile {
  std::int64_t rows = 0;     ///< of C
  std::int64_t columns = 0;  ///< of C

  bool operator==(const Tile&) const = default;
};

namespace backend {

/// "cuda" or "virtual".
const char* name();

/// True if times are those of a model, not measured.
bool modelled_time();

/// True if the compiler put a call before each access, for the race detector or the check build: the program
/// is slower.
bool instrumented();

/// The host's clock in milliseconds, from any starting point; on virtual GPUs the modelled one.
double host_ms();

/// Says that the calling host thread has read or written so many bytes of host memory. Real GPUs: nothing, it
/// took its time. Virtual GPUs: advances the modelled host clock by the time that the machine's host memory
/// takes, which all host threads share.
void host_work(std::uint64_t bytes);

/// Where a GPU sits in its host.
struct GpuPlace {
  std::string bus_id;     ///< on PCI, such as "0000:18:00.0"
  std::string numa_node;  ///< the number of the CPU's memory that is next to it; "unknown" if nobody says
};

/// The place of GPU `device`. Virtual GPUs have none: both are "unknown".
GpuPlace place_of(int device);

/// What a GPU is doing at a moment; none of what it does not tell.
struct GpuState {
  std::optional<double> sm_clock_mhz;   ///< of its multiprocessors
  std::optional<double> power_w;        ///< drawn by its board
  std::optional<double> power_limit_w;  ///< that its board may draw
  std::optional<double> temperature_c;  ///< of the GPU itself
  bool slowed_by_power = false;         ///< its clocks are held down: it draws as much as it may
  bool slowed_by_heat = false;          ///< its clocks are held down: it is as hot as it may be
  bool slowed_by_hardware = false;  ///< its clocks are held down by a safeguard of the board, for one of both
};

/// The state of GPU `device`, in about a millisecond. Virtual GPUs have none, nor has a machine whose
/// driver's library cannot be loaded.
std::optional<GpuState> gpu_state(int device);

/// Sets up the GPUs as the user asks. Call it before the first CUDA call. Throws UsageError if something
/// cannot be had.
void configure(const BackendOptions& options);

/// Sets what the driver reads from the environment: CUDA_DEVICE_MAX_CONNECTIONS=32 unless the user has set
/// it, since more streams than connections (8 by default) may wait for each other for ever. Called when the
/// program is loaded: after the first CUDA call it would be too late.
void prepare();
/// How many streams of a GPU can wait without holding each other up: what the environment says, 8 if it says
/// nothing. Virtual GPUs have no such limit of their own, and take that of programs, kMaxStreams.
int hardware_queues();

/// How often the GPUs have been taken away and begun anew in this process, and with them all that was set up
/// on them. Tests do that to virtual GPUs; for real ones 0.
std::uint64_t restarts();

/// Exit status after a failed call: kExitRace if the virtual GPUs have reported a race or a deadlock, else
/// kExitFailed.
int failure_exit_code();

/// One sentence on the last call that failed, beyond its error code; empty if there is nothing to add.
std::string error_detail();

/// What is needed to see a failure again, such as "schedule 17, hash 194cb83d"; else empty.
std::string failure_context();

/// The hardware stamp of a result: names and values, in this order; "unknown" where a value cannot be had.
std::vector<std::pair<std::string, std::string>> hardware();

/// The highest rate of one GPU's products of dense matrices, in TFLOP/s, from its data sheet (for f32 without
/// rounding the factors to TF32); 0 if it is not known.
double peak_tflops(ElementType type);

/// The tile of this GPU's 16-bit products of row-major matrices: on virtual GPUs the machine's. On real ones
/// cuBLAS chooses by shape, also which side is the longer one; this is what the model of an H100 has, 256
/// rows and 128 columns.
Tile product_tile();

/// What computes the matrix products of cuBLAS, such as "OpenBLAS".
std::string product_method();

/// Empty if there is a GPU that can be used, else why not.
std::string unavailable();

}  // namespace backend
}  // namespace overlap
