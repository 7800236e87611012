// Code of the program that is no kernel and runs when a stream says so: functions of cudaLaunchHostFunc, the
// algorithms of CUB.
#pragma once

#include <functional>

#include "engine/streams/operation.hpp"

namespace vgpu {

/// Calls `function` as the stream's own context, on a stack of the stream's that is as large as a thread's.
/// `site` are its callers. An exception that leaves it ends the program, as on real GPUs, with a sentence. If
/// there is no memory for the stack, it is not called, and that is a fault.
void call_in(Stream& stream, const hb::CallSite& site, const std::function<void()>& function);
/// True in such a function: the scheduler waits for its end, so it may not wait for others.
bool called_by_stream();

}  // namespace vgpu
