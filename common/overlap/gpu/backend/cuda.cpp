// Real GPUs.
#include "overlap/gpu/backend.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "overlap/gpu/error.hpp"
#include "overlap/gpu/nvml.hpp"

namespace overlap::backend {
namespace {

using Stamp = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kUnknown = "unknown";

// CUDA writes version 12.4 as 12040.
std::string version_text(cudaError_t error, int version) {
  if (error != cudaSuccess || version <= 0) return kUnknown;
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_version() {
  int version = 0;
  const cudaError_t error = cudaDriverGetVersion(&version);
  return version_text(error, version);
}

std::string runtime_version() {
  int version = 0;
  const cudaError_t error = cudaRuntimeGetVersion(&version);
  return version_text(error, version);
}

// NCCL writes version 2.28.9 as 22809.
std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return kUnknown;
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// The host decides whether NCCL may use NVLink multicast, which changes the time of the baselines.
std::string multicast_setting() {
  const char* setting = std::getenv("NCCL_NVLS_ENABLE");
  return setting == nullptr ? "NCCL's default" : std::string("NCCL_NVLS_ENABLE=") + setting;
}

std::string attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? std::to_string(value) : kUnknown;
}

// The bus id names the GPU whatever CUDA_VISIBLE_DEVICES says; empty if there is no such GPU.
std::string bus_id_of(int device) {
  std::array<char, 32> bus_id{};
  const bool found =
      cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device) == cudaSuccess;
  return found ? bus_id.data() : "";
}

// As nvidia-smi writes it: "1980 MHz", "700.00 W".
std::string with_unit(std::optional<double> value, const char* format) {
  if (!value) return kUnknown;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, *value);
  return text.data();
}

// Values that only the driver's library NVML knows.
void add_driver_facts(int device, Stamp& stamp) {
  const Nvml* nvml = Nvml::installed();
  const std::string bus_id = bus_id_of(device);
  const GpuState state = nvml != nullptr ? nvml->state(bus_id) : GpuState{};
  stamp.emplace_back("driver", nvml != nullptr ? nvml->driver_version().value_or(kUnknown) : kUnknown);
  stamp.emplace_back("max_sm_clock",
                     with_unit(nvml != nullptr ? nvml->max_sm_clock_mhz(bus_id) : std::nullopt, "%.0f MHz"));
  stamp.emplace_back("sm_clock", with_unit(state.sm_clock_mhz, "%.0f MHz"));
  stamp.emplace_back("power_limit", with_unit(state.power_limit_w, "%.2f W"));
}

}  // namespace

const char* name() { return "cuda"; }

bool modelled_time() { return false; }

bool instrumented() { return false; }

double host_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

void host_work(std::uint64_t) {}

GpuPlace place_of(int device) {
  GpuPlace place{kUnknown, kUnknown};
  const std::string bus_id = bus_id_of(device);
  if (bus_id.empty()) return place;
  place.bus_id = bus_id;
  // Linux writes the hexadecimal digits small, CUDA writes them large.
  std::transform(place.bus_id.begin(), place.bus_id.end(), place.bus_id.begin(),
                 [](unsigned char digit) { return static_cast<char>(std::tolower(digit)); });
  std::ifstream file("/sys/bus/pci/devices/" + place.bus_id + "/numa_node");
  int node = -1;  // also Linux's answer on a host with one node
  if (file >> node && node >= 0) place.numa_node = std::to_string(node);
  return place;
}

std::optional<GpuState> gpu_state(int device) {
  const Nvml* nvml = Nvml::installed();
  if (nvml == nullptr) return std::nullopt;
  return nvml->state(bus_id_of(device));
}

void configure(const BackendOptions& options) {
  if (options.schedule) throw UsageError("--schedule: only virtual GPUs can be given a schedule");
  if (!options.machine.empty()) throw UsageError("--machine: only virtual GPUs model a machine");
}

namespace {
constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";
// Runs when the program is loaded, before any CUDA call.
[[maybe_unused]] const bool prepared = (prepare(), true);
}  // namespace

void prepare() { setenv(kConnections, "32", 0); }

int hardware_queues() {
  const char* text = std::getenv(kConnections);
  const int queues = text == nullptr ? 0 : std::atoi(text);
  return queues > 0 ? queues : 8;  // CUDA's default
}

std::uint64_t restarts() { return 0; }

int failure_exit_code() { return kExitFailed; }

std::string error_detail() { return ""; }

std::string failure_context() { return ""; }

Stamp hardware() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) gpus = 0;
  cudaDeviceProp properties{};
  const bool found = gpus > 0 && cudaGetDeviceProperties(&properties, 0) == cudaSuccess;
  const std::string capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  Stamp stamp = {{"gpu", found ? properties.name : kUnknown},
                 {"gpus", std::to_string(gpus)},
                 {"compute_capability", found ? capability : kUnknown},
                 {"sms", attribute(cudaDevAttrMultiProcessorCount, 0)},
                 {"memory_bytes", found ? std::to_string(properties.totalGlobalMem) : kUnknown},
                 {"driver_cuda", driver_version()},
                 {"toolkit", runtime_version()},
                 {"nccl", nccl_version()},
                 {"nccl_nvls", multicast_setting()}};
  add_driver_facts(0, stamp);
  return stamp;
}

// 128 x 256 for cuBLAS, which computes the transpose of C (gemm.hpp).
Tile product_tile() { return {.rows = 256, .columns = 128}; }

double peak_tflops(ElementType type) {
  // From NVIDIA's data sheets, without sparsity; the number of multiprocessors distinguishes SXM cards from
  // others with the chip.
  struct Card {
    int major, minor, multiprocessors;
    double sixteen_bit, f32;
  };
  constexpr std::array kCards = {Card{8, 0, 108, 312, 19.5}, Card{9, 0, 114, 756, 51},
                                 Card{9, 0, 132, 989.4, 67}};
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return 0;
  for (const Card& card : kCards) {
    if (card.major != properties.major || card.minor != properties.minor ||
        card.multiprocessors != properties.multiProcessorCount)
      continue;
    if (type == ElementType::kF16 || type == ElementType::kBf16) return card.sixteen_bit;
    return type == ElementType::kF32 ? card.f32 : 0;
  }
  return 0;
}

std::string product_method() {
  std::array<int, 3> version{};
  constexpr std::array kParts = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (cublasGetProperty(kParts[i], &version[i]) != CUBLAS_STATUS_SUCCESS) return "cuBLAS";
  }
  return "cuBLAS " + std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
         std::to_string(version[2]);
}

std::string unavailable() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess) return std::string("no GPU can be used: ") + cudaGetErrorString(error);
  return gpus > 0 ? "" : "no GPU can be used: there is none";
}

}  // namespace overlap::backend
