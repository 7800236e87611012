#include "engine/host/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "race/happens_before.hpp"

namespace vgpu {

std::optional<unsigned int> Settings::bit_from_environment() {
  const char* text = hb::kEnabled ? std::getenv("VGPU_SEPARATING_BIT") : nullptr;
  if (text == nullptr) return std::nullopt;
  constexpr unsigned long kHighest = 63;
  return static_cast<unsigned int>(std::min(std::strtoul(text, nullptr, 10), kHighest));
}

Machine Settings::load() const {
  Machine machine = load_machine(machine_);
  if (gpus_ != 0) machine.gpus = gpus_;
  if (gpus_per_node_ != 0) {
    if (machine.rail_rate == 0 && gpus_per_node_ < machine.gpus) {
      throw std::runtime_error("machine description: '" + machine_ +
                               "' has no 'nodes', which say what is between groups of GPUs");
    }
    machine.gpus_per_node = gpus_per_node_;
  }
  return machine;
}

Settings& settings() {
  static Settings chosen;
  return chosen;
}

}  // namespace vgpu
