#include "engine/host/settings.hpp"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "race/happens_before.hpp"

namespace vgpu {

std::optional<unsigned int> Settings::bit_from_environment() {
  const char* text = hb::kEnabled ? std::getenv("VGPU_SEPARATING_BIT") : nullptr;
  if (text == nullptr) return std::nullopt;
  constexpr unsigned int kHighest = 63;
  const std::string_view all = text;
  unsigned int bit = 0;
  const auto [end, error] = std::from_chars(all.begin(), all.end(), bit);
  if (error != std::errc{} || end != all.end() || bit > kHighest)
    throw std::runtime_error("VGPU_SEPARATING_BIT='" + std::string(all) + "' is not a bit's number, 0 to 63");
  return bit;
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
  static Settings& chosen =
      *new Settings;  // never destroyed: static objects may call CUDA in their destructors
  return chosen;
}

}  // namespace vgpu
