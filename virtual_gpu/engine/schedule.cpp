#include "engine/schedule.hpp"

#include <cstdio>

namespace vgpu {

std::string Schedule::describe() const {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_));
  return "schedule " + (random() ? std::to_string(*seed_) : "time order") + ", hash " + hash;
}

}  // namespace vgpu
