// The driver's library that reports a GPU's state (NVML, libnvidia-ml.so.1). It is loaded when a program
// runs: machines without a driver have none, and toolkits come without its header.
#pragma once

#include <optional>
#include <string>

#include "overlap/gpu/backend.hpp"

namespace overlap {

/// A session with that library.
class Nvml {
 public:
  /// Loads it and begins a session. Throws std::runtime_error.
  explicit Nvml(const char* library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The one of this machine; null if there is none. Several threads may use it.
  static const Nvml* installed();

  /// Such as "580.159.04".
  std::optional<std::string> driver_version() const;
  /// Constant properties and the current state of the GPU with that PCI bus id.
  std::optional<unsigned> max_sm_clock_mhz(const std::string& bus_id) const;
  backend::GpuState state(const std::string& bus_id) const;

 private:
  struct Device;  // NVML's own
  // Calls NVML's function of that name, if it is there; false if it is not or if it fails.
  template <typename... Arguments>
  bool call(const char* function, Arguments... arguments) const;
  // The integer that such a function returns of a device; its other arguments precede the integer.
  template <typename Number, typename... Arguments>
  std::optional<Number> number(const char* function, Device* device, Arguments... arguments) const;
  Device* device(const std::string& bus_id) const;
  std::optional<double> power_w(Device* device) const;

  void* library_;
};

}  // namespace overlap
