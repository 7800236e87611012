#include "engine/settings.hpp"

namespace vgpu {

Machine Settings::load() const {
  Machine machine = load_machine(machine_);
  if (gpus_ != 0) machine.gpus = gpus_;
  return machine;
}

Settings& settings() {
  static Settings chosen;
  return chosen;
}

}  // namespace vgpu
