// Virtual GPUs.
#include "overlap/gpu/backend.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vgpu/control.hpp>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::backend {
namespace {

// A process has one set of virtual GPUs, and so one requested schedule.
std::optional<std::uint64_t> chosen_schedule;

constexpr int kGpusOfTheDefaultMachine = 8;  // virtual_gpu/machines/small.json

std::string schedule_text() {
  return chosen_schedule ? std::to_string(*chosen_schedule) : "in the order of time";
}

}  // namespace

const char* name() { return "virtual"; }

bool modelled_time() { return true; }

bool instrumented() {
#if defined(__SANITIZE_THREAD__) || defined(VGPU_CHECK)
  return true;
#else
  return false;
#endif
}

double host_ms() { return vgpu::host_time_ms(); }

void host_work(std::uint64_t bytes) { vgpu::host_work(bytes); }

GpuPlace place_of(int) { return {"unknown", "unknown"}; }

std::optional<GpuState> gpu_state(int) { return std::nullopt; }

void configure(const BackendOptions& options) {
  try {
    if (!options.machine.empty()) {
      vgpu::use_machine(options.machine);
    } else if (options.gpus > kGpusOfTheDefaultMachine && options.nodes == 0) {
      vgpu::use_gpus(options.gpus);
    }
    if (options.nodes > 0) vgpu::use_nodes(options.nodes, options.gpus_per_node);
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--machine: ") + error.what());
  }
  if (options.schedule) vgpu::use_schedule(*options.schedule);
  chosen_schedule = options.schedule;
}

void prepare() {}

int hardware_queues() { return kMaxStreams; }

void hold(cudaStream_t stream, std::uint32_t* word, std::uint32_t value, unsigned* /*stop*/) {
  CU_CHECK(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_GEQ));
}

std::uint64_t restarts() { return vgpu::resets(); }

int failure_exit_code() { return vgpu::failure_reported() ? kExitRace : kExitFailed; }

std::string error_detail() { return vgpu::last_error_detail(); }

std::string failure_context() {
  if (!chosen_schedule) return "";
  char hash[17];
  std::snprintf(hash, sizeof hash, "%08llx", static_cast<unsigned long long>(vgpu::schedule_hash()));
  return "schedule " + std::to_string(*chosen_schedule) + ", hash " + hash;
}

std::vector<std::pair<std::string, std::string>> hardware() {
  int gpus = 0;
  cudaDeviceProp properties{};
  const bool found =
      cudaGetDeviceCount(&gpus) == cudaSuccess && cudaGetDeviceProperties(&properties, 0) == cudaSuccess;
  return {{"gpu", found ? properties.name : "unknown"},
          {"gpus", std::to_string(gpus)},
          {"machine", vgpu::machine_name()},
          {"schedule", schedule_text()}};
}

double peak_tflops(ElementType type) {
  if (type == ElementType::kInt32) return 0;
  return vgpu::product_tflops(type != ElementType::kF32);
}

Tile product_tile() {
  // cuBLAS computes the transpose of C (gemm.hpp), so the rows of its tiles are columns of C.
  const vgpu::ProductTile tile = vgpu::product_tile();
  return {.rows = tile.columns, .columns = tile.rows};
}

std::string product_method() {
  if (vgpu::product_method() == vgpu::ProductMethod::kOpenBlas) return "virtual cuBLAS, with OpenBLAS";
  return "virtual cuBLAS, with a loop (several times as slow as with libopenblas-dev)";
}

std::string unavailable() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus > 0) return "";
  return std::string("no virtual GPU: ") + cudaGetErrorString(error);
}

}  // namespace overlap::backend
