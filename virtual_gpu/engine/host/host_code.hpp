// Calls that block, or change what runs, are for the code of the host's threads.
#pragma once

namespace vgpu {

/// A kernel that makes the call `call` is stopped with a sentence that names it. In other code that a stream
/// runs (functions of cudaLaunchHostFunc, those that algorithms call) it throws std::logic_error. A second
/// thread of the operating system ends the program, as require_own_thread() says.
void require_host_code(const char* call);
/// The same for kernels alone.
void refuse_in_kernel(const char* call);

}  // namespace vgpu
