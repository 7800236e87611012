// What the virtual GPUs still do when main() returns or exit() is called.
#pragma once

namespace vgpu {

inline constexpr int kExitReported = 3;  // as after a data race

/// Called by the first CUDA call. At the end, before static objects are destroyed, all that was enqueued
/// runs; and a program of whose GPUs a fault or a deadlock was reported ends with status 3, whatever it
/// returns.
void watch_program_end();
/// True after exit() in a kernel, in a function that a stream calls, or while other host threads wait: the
/// destructors of static objects run there, and their CUDA calls return cudaErrorCudartUnloading.
bool ended_inside();

}  // namespace vgpu
