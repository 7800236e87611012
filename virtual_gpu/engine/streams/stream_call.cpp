#include "engine/streams/stream_call.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "engine/host/exception_state.hpp"
#include "engine/streams/stream.hpp"

namespace vgpu {
namespace {

struct Call {
  Stream& stream;
  const hb::CallSite& site;
  const std::function<void()>& function;
  Fiber caller;  // where it is suspended
  Fiber* fiber;
};
Call* running = nullptr;

[[noreturn]] void refuse_exception(const Call& call, const char* what) {
  const Operation* head = call.stream.head();
  std::fprintf(stderr,
               "virtual GPUs: %s: %s throws an exception, which nobody can catch: %s. On real GPUs, too, "
               "that ends the program\n",
               head->origin().c_str(), head->describe().c_str(), what);
  std::fflush(nullptr);
  std::abort();
}

void run(const Call& call) {
  hb::enter(call.stream.contexts().own());
  hb::push_callers(call.site);
  try {
    call.function();
  } catch (const std::exception& error) {
    refuse_exception(call, error.what());
  } catch (...) {
    refuse_exception(call, "it is no std::exception");
  }
  hb::pop_callers(call.site);
  hb::enter(hb::runtime_context());
}

void fiber_entry() {
  Call& call = *running;
  run(call);
  switch_fiber(*call.fiber, call.caller);
}

}  // namespace

void call_in(Errors& errors, Stream& stream, const hb::CallSite& site,
             const std::function<void()>& function) {
  FiberPool& fibers = stream.contexts().call_stacks();
  Call call{stream, site, function, {}, nullptr};
  try {
    call.fiber = &fibers.get(&fiber_entry);
  } catch (const std::bad_alloc&) {
    return errors.fault(cudaErrorMemoryAllocation,
                        "the host has no memory for the stack of: " + stream.head()->describe() +
                            stream.head()->enqueued_at());
  }
  Call* const outer = std::exchange(running, &call);
  const ExceptionState exceptions = std::exchange(exception_state(), {});
  switch_fiber(call.caller, *call.fiber);
  exception_state() = exceptions;
  running = outer;
  fibers.put(*call.fiber);
}

bool called_by_stream() { return running != nullptr; }

}  // namespace vgpu
