// Calls that block, or change what runs, are for the code of the host's threads.
#pragma once

namespace vgpu {

class Runtime;

/// For a call that only host code may make. A kernel that makes it faults; in functions of cudaLaunchHostFunc
/// and of CUB's algorithms it throws std::logic_error; in a second thread of the operating system it ends the
/// program (require_own_thread()).
void require_host_code(const char* call);
/// The same for kernels alone.
void refuse_in_kernel(const char* call);

/// After count_host_code(): long host code takes modelled time, in which GPUs go on.
///@{
/// A call of CUDA begins.
void charge_host_code(Runtime& runtime);
/// Host code has run for a while without a call.
void note_host_code();
///@}

}  // namespace vgpu
