// What host code needs to know of real and virtual GPUs. gpu/backend/ has an implementation for each.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "overlap/gpu/element_type.hpp"

namespace overlap {

/// Options of virtual GPUs. On real GPUs the nodes are those of the machine.
struct BackendOptions {
  std::optional<std::uint64_t>
      schedule;              ///< seed of a random order of all operations; none: in the order of time
  std::string machine = {};  ///< a machine's name or description file; empty: the default machine
  int gpus = 0;              ///< requested; the default machine grows to this number
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
  std::string numa_node;  ///< NUMA node of the nearest CPU memory; "unknown" if the system does not report it
};

/// The place of GPU `device`. Virtual GPUs have none: both are "unknown".
GpuPlace place_of(int device);

/// A sample of a GPU's state. Values that the GPU does not report are empty.
struct GpuState {
  std::optional<double> sm_clock_mhz;   ///< of its multiprocessors
  std::optional<double> power_w;        ///< drawn by its board
  std::optional<double> power_limit_w;  ///< that its board may draw
  std::optional<double> temperature_c;  ///< of the GPU itself
  bool slowed_by_power = false;         ///< clocks are reduced: the power limit is reached
  bool slowed_by_heat = false;          ///< clocks are reduced: the temperature limit is reached
  bool slowed_by_hardware = false;      ///< clocks are reduced by the board's protection, for either reason
};

/// The state of GPU `device`, in about a millisecond. Virtual GPUs have none, nor has a machine whose
/// driver's library cannot be loaded.
std::optional<GpuState> gpu_state(int device);

/// Sets up the GPUs by these options. Call it before the first CUDA call. Throws UsageError if an option
/// cannot be met.
void configure(const BackendOptions& options);

/// Sets what the driver reads from the environment: CUDA_DEVICE_MAX_CONNECTIONS=32 unless the user has set
/// it, since more streams than connections (8 by default) may wait for each other for ever. Called when the
/// program is loaded: after the first CUDA call it would be too late.
void prepare();
/// Streams of one GPU that can wait independently: CUDA_DEVICE_MAX_CONNECTIONS, or 8 if it is not set.
/// Virtual GPUs have no such limit: kMaxStreams.
int hardware_queues();

/// The stream's later work waits until the word in pinned memory has reached `value`. On real GPUs a kernel
/// reads the word, which also ends once `stop` (Rank::abort_flag()) is set. At a word of
/// cuStreamWaitValue32, with which virtual GPUs wait, a real one seems to look only every few microseconds
/// (docs/reading_output.md has the figures).
void hold(cudaStream_t stream, std::uint32_t* word, std::uint32_t value, unsigned* stop);

/// How often the GPUs were reset in this process, which discards all state on them. Only tests reset virtual
/// GPUs; 0 for real ones.
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

/// Peak rate of dense GEMMs on one GPU in TFLOP/s, from its data sheet (f32: without TF32); 0 if it is
/// unknown.
double peak_tflops(ElementType type);

/// The tile of this GPU's 16-bit row-major GEMMs. Virtual GPUs: the machine's. Real GPUs: 256 rows and 128
/// columns, as the model of an H100 has; cuBLAS itself chooses by shape.
Tile product_tile();

/// What computes the matrix products of cuBLAS, such as "OpenBLAS".
std::string product_method();

/// Empty if there is a GPU that can be used, else why not.
std::string unavailable();

}  // namespace backend
}  // namespace overlap
