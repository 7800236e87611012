// Turns a kernel's access to memory that is not there into CUDA's sticky "illegal memory access", with a
// sentence that says which thread and which memory.
#pragma once

#include <string>

namespace vgpu {

class MachineState;

/// "kernel 'k', block (0,0,0), thread (1,0,0) ": which thread runs.
std::string running_thread();

/// Takes over SIGSEGV, SIGBUS, SIGFPE and SIGILL, for kernels only: in host code, and in other threads of the
/// operating system, they go on to the handlers that the program had before. `machine` says where addresses
/// lie; nullptr: the runtime that had one is destroyed.
void install_fault_handler(MachineState* machine);

}  // namespace vgpu
