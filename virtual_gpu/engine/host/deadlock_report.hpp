// Who waits for what when nothing can happen any more.
#pragma once

#include "engine/scheduler.hpp"

namespace vgpu {

/// Prints every stream's head and every host thread that waits, with what each waits for.
void report_deadlock(const Scheduler& scheduler, const Devices& devices, const HostThreads& hosts);
/// The same of streams, when the program has ended.
void report_unfinished(const Scheduler& scheduler, const Devices& devices);

}  // namespace vgpu
