// Code of the program that is no kernel and runs when a stream says so: functions of cudaLaunchHostFunc, the
// algorithms of CUB.
#pragma once

#include <functional>

#include "engine/streams/operation.hpp"

namespace vgpu {

/// Calls `function` as the stream's own context, on a stack of the stream's. `site` are its callers.
void call_in(Stream& stream, const hb::CallSite& site, const std::function<void()>& function);

}  // namespace vgpu
