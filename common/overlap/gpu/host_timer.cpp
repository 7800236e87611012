#include "overlap/gpu/host_timer.hpp"

#include "overlap/gpu/backend.hpp"

namespace overlap {

HostTimer::HostTimer() : start_ms_(backend::host_ms()) {}

double HostTimer::milliseconds() const { return backend::host_ms() - start_ms_; }

}  // namespace overlap
