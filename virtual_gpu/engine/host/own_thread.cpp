// Programs with several threads of the operating system: calls of more than one of them end the program.
#include "engine/host/own_thread.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace vgpu {
namespace {
// The first thread that calls. Not a member of the runtime, which two threads might be making.
std::atomic<std::thread::id> owner{};
}  // namespace

bool on_own_thread() { return owner.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

void require_own_thread(const char* call) {
  std::thread::id first{};
  const std::thread::id self = std::this_thread::get_id();
  if (owner.compare_exchange_strong(first, self) || first == self) return;
  std::fprintf(
      stderr,
      "virtual GPUs: %s was called in a second thread (std::thread); all CUDA calls of a program must "
      "come from one thread, which may enqueue work on all GPUs and then wait. (Host threads for ranks "
      "are fibers here: vgpu::run_host_threads.)\n",
      call);
  std::fflush(stdout);
  std::_Exit(2);  // not exit(): other threads are in the middle of something
}

}  // namespace vgpu
