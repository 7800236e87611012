#include "schedule.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "overlap/gpu/backend.hpp"
#include "vgpu/control.hpp"

namespace overlap {
namespace {

constexpr std::uint64_t kRandomOrders = 3;

/// The virtual GPUs as they were at the start of the program, for the tests that share the process.
struct Restored {
  Restored() { vgpu::reset(); }
  ~Restored() { vgpu::reset(); }
};

}  // namespace

void in_schedules(const std::function<void()>& test) {
  for (std::uint64_t seed = 0; seed <= (backend::instrumented() ? 0 : kRandomOrders); ++seed) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, "schedule " + std::to_string(seed));
    const Restored restored;
    if (seed > 0) vgpu::use_schedule(seed);
    test();
  }
}

}  // namespace overlap
