// Turns a kernel's access to memory that is not there into CUDA's sticky "illegal memory access", with a
// sentence that says which thread and which memory.
#pragma once

namespace vgpu {

/// Takes over SIGSEGV and SIGBUS, for kernels only: a fault in host code goes the way it always went.
void install_fault_handler();

}  // namespace vgpu
