// Lines of kernels in sentences and reports.
#pragma once

#include <string>

#include "race/happens_before.hpp"

namespace vgpu {

/// " at x.cu:12", the line of a return address into a kernel; "" if it is not known: outside the race build.
inline std::string at_line(const void* caller) {
  if (caller == nullptr) return {};
  hb::CallSite site;
  site.frames[0] = const_cast<void*>(caller);
  site.size = 1;
  const std::string line = hb::describe(site);
  return line.empty() ? "" : " at " + line;
}
/// ", initialised at x.cu:12", likewise.
inline std::string at_line(const char* what, const void* caller) {
  const std::string line = at_line(caller);
  return line.empty() ? "" : std::string(", ") + what + line;
}

}  // namespace vgpu
