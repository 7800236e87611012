// What a program may ask of its timeline.
#include "vgpu/timeline.hpp"

#include "engine/host/host_code.hpp"
#include "engine/host/settings.hpp"
#include "engine/runtime.hpp"

namespace vgpu {

void record_timeline() { settings().record_timeline(); }
bool recording_timeline() { return settings().records_timeline(); }

std::vector<TimelineEntry> timeline() {
  if (runtime_if_started() == nullptr) return {};
  const hb::RuntimeScope scope;
  return runtime().timeline();
}

// The labels are the runtime's memory: the race build must not take them for the program's.
void push_label(const std::string& label) {
  require_host_code("vgpu::push_label()");
  hb::start();
  const hb::RuntimeScope scope;
  runtime().host().push_label(label);
}

void pop_label() {
  if (runtime_if_started() == nullptr) return;
  require_host_code("vgpu::pop_label()");
  const hb::RuntimeScope scope;
  runtime().host().pop_label();
}

}  // namespace vgpu
