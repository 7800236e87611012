// What the virtual GPUs still do when main() returns or exit() is called.
#pragma once

namespace vgpu {

inline constexpr int kExitReported = 3;  // as after a data race

/// Called by the first CUDA call. At exit, before static objects are destroyed, all enqueued work runs. After
/// a reported fault or deadlock the exit status is 3.
void watch_program_end();
/// True after exit() in a kernel, in a function that a stream calls, or while other host threads wait. CUDA
/// calls of static destructors then return cudaErrorCudartUnloading.
bool ended_inside();

}  // namespace vgpu
