#include "engine/host/host_code.hpp"

#include <stdexcept>
#include <string>

#include "engine/host/own_thread.hpp"
#include "engine/kernel/block.hpp"
#include "engine/runtime.hpp"
#include "engine/streams/stream_call.hpp"

namespace vgpu {

void refuse_in_kernel(const char* call) {
  Block* block = current_block();
  if (block == nullptr) return;
  block->fault("kernel '" + block->grid().name + "' calls " + call +
               ": not supported on virtual GPUs, and nvcc refuses calls of host functions in kernels");
}

void require_host_code(const char* call) {
  require_own_thread(call);
  refuse_in_kernel(call);
  if (called_by_stream())
    throw std::logic_error(std::string(call) +
                           " is not permitted in a function of cudaLaunchHostFunc, or of an algorithm");
}

}  // namespace vgpu
