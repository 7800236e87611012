// Turns a kernel's access to memory that is not there into CUDA's sticky "illegal memory access", with a
// sentence that says which thread and which memory.
#pragma once

namespace vgpu {

/// Takes over SIGSEGV, SIGBUS, SIGFPE and SIGILL, for kernels only: in host code, and in other threads of the
/// operating system, they go on to the handlers that the program had before.
void install_fault_handler();

}  // namespace vgpu
