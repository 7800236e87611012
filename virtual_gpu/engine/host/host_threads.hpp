// The host's threads. A program starts with one. run_host_threads() adds more, as fibers: the scheduler lets
// one of them run until it blocks or asks, then chooses what happens next.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/host/host_thread.hpp"
#include "engine/kernel/fiber.hpp"

namespace vgpu {

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
  /// HostWaits::block_until().
  using BlockUntil = std::function<void(const HostThread::Wait&)>;
  /// See vgpu::run_host_threads().
  void run(const BlockUntil& block_until, int count, const std::function<void(int)>& body);
  /// Until run() ends nothing is enqueued and nothing blocks.
  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  /// Continues `thread`, whose wait is over. Returns when the caller's is.
  void switch_to(HostThread& thread);

 private:
  static void fiber_entry();
  inline static HostThreads* running_ = nullptr;  // whose threads it starts
  /// Throws std::bad_alloc.
  void start(HostThread& thread, int index);
  /// All but the program's own, which have ended or not begun.
  void forget_threads();

  FiberPool stacks_;
  std::vector<std::unique_ptr<HostThread>> threads_;  // the first is the program's own
  HostThread* current_;
  const std::function<void(int)>* body_ = nullptr;
  const BlockUntil* block_until_ = nullptr;
  bool stopping_ = false;
  char join_order_ = 0;  // an address: what the threads have done comes before the end of run()
};

}  // namespace vgpu
