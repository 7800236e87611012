#include "overlap/gpu/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>

namespace overlap {
namespace {

// NVML's numbers and types, as its reference manual has them.
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;          // NVML_CLOCK_SM
constexpr int kGpuSensor = 0;        // NVML_TEMPERATURE_GPU
constexpr unsigned kPowerNow = 186;  // NVML_FI_DEV_POWER_INSTANT

// Reasons for clocks below their maximum (nvmlClocksEventReason...).
constexpr std::uint64_t kByPower = 0x4 | 0x80;  // the software's power cap, the hardware's power brake
constexpr std::uint64_t kByHeat = 0x20 | 0x40;  // the software's thermal slowdown, the hardware's
constexpr std::uint64_t kByHardware = 0x8;      // one of the hardware's

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp_us;
  long long latency_us;
  int type;
  int status;
  union {
    double as_double;
    unsigned as_unsigned;
    unsigned long long as_unsigned_long_long;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace

Nvml::Nvml(const char* library) : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  // Not nvmlInitWithFlags(NVML_INIT_FLAG_NO_ATTACH), although it is faster: the first initialisation decides
  // for the whole process, and then neither we nor NCCL find a GPU (seen on H200).
  if (!call("nvmlInit_v2")) {
    dlclose(library_);
    throw std::runtime_error(std::string(library) + " does not start");
  }
}

Nvml::~Nvml() {
  call("nvmlShutdown");
  dlclose(library_);
}

const Nvml* Nvml::installed() {
  static const std::unique_ptr<const Nvml> one = []() -> std::unique_ptr<const Nvml> {
    try {
      return std::make_unique<const Nvml>("libnvidia-ml.so.1");
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  }();
  return one.get();
}

template <typename... Arguments>
bool Nvml::call(const char* function, Arguments... arguments) const {
  const auto pointer = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, function));
  return pointer != nullptr && pointer(arguments...) == kSuccess;
}

template <typename Number, typename... Arguments>
std::optional<Number> Nvml::number(const char* function, Device* device, Arguments... arguments) const {
  Number value{};
  if (device == nullptr || !call(function, device, arguments..., &value)) return std::nullopt;
  return value;
}

Nvml::Device* Nvml::device(const std::string& bus_id) const {
  Device* found = nullptr;
  return call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &found) ? found : nullptr;
}

std::optional<std::string> Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size())))
    return std::nullopt;
  return text.data();
}

std::optional<unsigned> Nvml::max_sm_clock_mhz(const std::string& bus_id) const {
  return number<unsigned>("nvmlDeviceGetMaxClockInfo", device(bus_id), kSmClock);
}

// The power at this moment; the usual function returns the mean of the last second, but most timed parts are
// shorter.
std::optional<double> Nvml::power_w(Device* device) const {
  FieldValue field{.field = kPowerNow,
                   .scope = 0,
                   .timestamp_us = 0,
                   .latency_us = 0,
                   .type = 0,
                   .status = 0,
                   .value = {}};
  const bool told = device != nullptr && call("nvmlDeviceGetFieldValues", device, 1, &field);
  if (told && field.status == kSuccess) return field.value.as_unsigned / 1e3;
  const std::optional<unsigned> milliwatts = number<unsigned>("nvmlDeviceGetPowerUsage", device);
  return milliwatts ? std::optional(*milliwatts / 1e3) : std::nullopt;
}

backend::GpuState Nvml::state(const std::string& bus_id) const {
  Device* const gpu = device(bus_id);
  // Reads the reasons first, because they end with the effect.
  std::optional reasons = number<unsigned long long>("nvmlDeviceGetCurrentClocksEventReasons", gpu);
  if (!reasons)  // as drivers before 535 call it
    reasons = number<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", gpu);
  backend::GpuState state;
  state.sm_clock_mhz = number<unsigned>("nvmlDeviceGetClockInfo", gpu, kSmClock);
  state.power_w = power_w(gpu);
  state.temperature_c = number<unsigned>("nvmlDeviceGetTemperature", gpu, kGpuSensor);
  if (const auto limit = number<unsigned>("nvmlDeviceGetPowerManagementLimit", gpu))
    state.power_limit_w = *limit / 1e3;
  state.slowed_by_power = (reasons.value_or(0) & kByPower) != 0;
  state.slowed_by_heat = (reasons.value_or(0) & kByHeat) != 0;
  state.slowed_by_hardware = (reasons.value_or(0) & kByHardware) != 0;
  return state;
}

}  // namespace overlap
