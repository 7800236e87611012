#include "engine/streams/stream_call.hpp"

#include "engine/streams/stream.hpp"

namespace vgpu {
namespace {

Fiber scheduler_fiber;
Fiber* call_fiber = nullptr;

struct Call {
  Stream& stream;
  const hb::CallSite& site;
  const std::function<void()>& function;
};
const Call* running = nullptr;

void run(const Call& call) {
  hb::enter(call.stream.contexts().own());
  hb::push_callers(call.site);
  call.function();
  hb::pop_callers(call.site);
  hb::enter(hb::runtime_context());
}

void fiber_entry() {
  run(*running);
  switch_fiber(*call_fiber, scheduler_fiber);
}

}  // namespace

void call_in(Stream& stream, const hb::CallSite& site, const std::function<void()>& function) {
  const Call call{stream, site, function};
  running = &call;
  FiberPool& fibers = stream.contexts().fibers(0, 0);
  call_fiber = &fibers.get(&fiber_entry);
  switch_fiber(scheduler_fiber, *call_fiber);
  fibers.put(*call_fiber);
}

}  // namespace vgpu
