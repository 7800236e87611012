// Code of the program that is no kernel and runs when a stream says so: functions of cudaLaunchHostFunc, the
// algorithms of CUB.
#pragma once

#include <functional>

#include "engine/host/errors.hpp"
#include "engine/streams/operation.hpp"

namespace vgpu {

/// Calls `function` in the stream's context, on a stack as large as a thread's; `site`: its callers. An
/// exception that leaves it ends the program, as on real GPUs. No memory for the stack is a fault.
void call_in(Errors& errors, Stream& stream, const hb::CallSite& site, const std::function<void()>& function);
/// True in such a function: the scheduler waits for its end, so it may not wait for others.
bool called_by_stream();

}  // namespace vgpu
