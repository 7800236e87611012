#include "engine/host/host_code.hpp"

#include <stdexcept>
#include <string>

#include "engine/host/own_thread.hpp"
#include "engine/host/settings.hpp"
#include "engine/kernel/block.hpp"
#include "engine/kernel/coverage.hpp"
#include "engine/runtime.hpp"
#include "engine/streams/stream_call.hpp"

namespace vgpu {
namespace {

constexpr double kNsPerBasicBlock = 1;
constexpr std::uint64_t kLong = 1'000'000;  // basic blocks without a call, from which on they count
std::uint64_t charged = 0;                  // basic blocks of the host that have taken their time

/// Basic blocks of the host since then.
std::uint64_t uncharged() { return basic_blocks() - kernel_basic_blocks - charged; }

}  // namespace

void charge_host_code(Runtime& runtime) {
  if (!settings().counts_host_code()) return;
  if (uncharged() >= kLong) runtime.host().spend(static_cast<double>(uncharged()) * kNsPerBasicBlock);
  charged += uncharged();
}

void note_host_code() {
  Runtime* runtime = settings().counts_host_code() && on_own_thread() ? runtime_if_started() : nullptr;
  if (runtime == nullptr || uncharged() < kLong || called_by_stream() || ended_inside()) return;
  const hb::RuntimeScope scope;
  charge_host_code(*runtime);
  try {
    runtime->waits().yield();
  } catch (const ApiError& error) {  // the program goes on, and may wait for ever
    if (!runtime->errors().told()) runtime->errors().note("long host code without a call", error.what());
  }
}

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
