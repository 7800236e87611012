// Calls that block, or change what runs, are for the code of the host's threads.
#pragma once

namespace vgpu {

class Runtime;

/// A kernel that makes the call `call` is stopped with a sentence that names it. In other code that a stream
/// runs (functions of cudaLaunchHostFunc, those that algorithms call) it throws std::logic_error. A second
/// thread of the operating system ends the program, as require_own_thread() says.
void require_host_code(const char* call);
/// The same for kernels alone.
void refuse_in_kernel(const char* call);

/// If the program asked for it (count_host_code() of vgpu/control.hpp): long host code takes time of the
/// host's clock, and GPUs go on meanwhile.
///@{
/// A call of CUDA begins.
void charge_host_code(Runtime& runtime);
/// Host code has run for a while without a call.
void note_host_code();
///@}

}  // namespace vgpu
