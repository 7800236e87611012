// Who waits for what when nothing can happen any more.
#pragma once

#include "engine/host/host_threads.hpp"
#include "engine/model/device.hpp"
#include "engine/schedule.hpp"

namespace vgpu {

/// Prints every stream's head and every host thread that waits, with what each waits for.
void report_deadlock(const Schedule& schedule, const Devices& devices, const HostThreads& hosts);
/// The same of streams, when the program has ended.
void report_unfinished(const Schedule& schedule, const Devices& devices);

}  // namespace vgpu
