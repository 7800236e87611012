#include "schedule.hpp"

namespace overlap {

std::vector<std::uint64_t> schedules_to_try() { return {0}; }

void use_schedule(std::uint64_t) {}

}  // namespace overlap
