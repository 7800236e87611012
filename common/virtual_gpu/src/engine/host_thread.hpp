// The host's threads. In CUDA each has a current device and a last error of its own; here also a modelled
// clock. A program starts with one. run_host_threads() adds more, as fibers: the scheduler lets one of them
// run until it blocks or asks, then chooses what happens next.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/fiber.hpp"
#include "race/happens_before.hpp"
#include "vgpu/types.h"

namespace vgpu {

class Runtime;

namespace nccl {
struct Group;  // libraries/nccl/communicator.hpp
}

struct HostThread {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  double now = 0;  // modelled clock, ns
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

  struct LaunchConfiguration {
    dim3 grid, block;
    std::size_t shared_bytes;
    cudaStream_t stream;
  };
  // A stack: the arguments of a launch are evaluated after its configuration, and may launch kernels
  // themselves.
  std::vector<LaunchConfiguration> pending_launches;
  std::vector<std::string> labels;  // for what it enqueues, outermost first

  std::shared_ptr<nccl::Group> nccl_group;  // null before the thread's first NCCL call

  int number = -1;  // among those of one run(); -1: the program's own
  /// For reports: "host thread 3".
  std::string name = "the host";
  hb::Context context = nullptr;

  /// What a thread waits for that is not running.
  struct Wait {
    std::function<bool()> reached;
    std::function<double()> time;  // when it goes on at the earliest, ns; asked once `reached` holds
    std::string what;              // for the deadlock report
    bool poll = false;             // it only looks; that it goes on changes nothing
  };
  const Wait* wait = nullptr;  // nullptr: it runs, or has ended

  bool ended = false;
  Fiber fiber;             // of the first thread: where its own stack is suspended
  Fiber* stack = nullptr;  // of the others: what they run on, from the pool
  struct ExceptionState {  // of the C++ runtime, one for each operating system thread
    void* caught = nullptr;
    unsigned int uncaught = 0;
  } exceptions;
};

/// All host threads of the program, and the switch between them.
class HostThreads {
 public:
  HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

  HostThread& current() { return *current_; }
  const std::vector<std::unique_ptr<HostThread>>& all() const { return threads_; }
  bool several() const { return threads_.size() > 1; }

  /// The address by which what comes before the end of run() is ordered.
  const void* join_order() const { return &join_order_; }
  /// See vgpu::run_host_threads().
  void run(Runtime& runtime, int count, const std::function<void(int)>& body);
  /// Continues `thread`, whose wait is over. Returns when the caller's is.
  void switch_to(HostThread& thread);

 private:
  static void fiber_entry();
  void start(HostThread& thread, int index);

  FiberPool stacks_;
  std::vector<std::unique_ptr<HostThread>> threads_;  // the first is the program's own
  HostThread* current_;
  const std::function<void(int)>* body_ = nullptr;
  Runtime* runtime_ = nullptr;
  char join_order_ = 0;  // an address: what the threads have done comes before the end of run()
};

}  // namespace vgpu
