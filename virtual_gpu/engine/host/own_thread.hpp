// Calls come from one thread of the operating system.
#pragma once

namespace vgpu {

/// Ends the program with a sentence if another thread of the operating system has made a call before: host
/// threads are fibers, and the runtime has no locks.
void require_own_thread(const char* call);
/// True in the thread that has made the first call.
bool on_own_thread();

}  // namespace vgpu
