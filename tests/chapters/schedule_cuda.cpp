#include "schedule.hpp"

namespace overlap {

void in_schedules(const std::function<void()>& test) { test(); }

}  // namespace overlap
