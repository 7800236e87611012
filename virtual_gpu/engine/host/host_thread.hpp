// One of the host's threads. In CUDA each has a current device and a last error of its own; here also a
// modelled clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/host/exception_state.hpp"
#include "engine/kernel/fiber.hpp"
#include "engine/library_states.hpp"
#include "race/happens_before.hpp"
#include "vgpu/types.h"

namespace vgpu {

class Stream;

class HostThread {
 public:
  int device() const { return device_; }
  void use_device(int device) { device_ = device; }
  cudaError_t last_error() const { return last_error_; }
  void set_last_error(cudaError_t error) { last_error_ = error; }
  cudaStreamCaptureMode capture_mode() const { return capture_mode_; }
  /// Returns the mode until now.
  cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode) {
    return std::exchange(capture_mode_, mode);
  }

  /// Its modelled clock, ns. It never goes back.
  ///@{
  double now() const { return now_; }
  void spend(double nanoseconds) { now_ += nanoseconds; }
  void wait_until(double time) { now_ = std::max(now_, time); }
  ///@}

  /// Launches whose arguments are still being evaluated. A stack: arguments may launch kernels themselves.
  ///@{
  struct LaunchConfiguration {
    dim3 grid, block;
    std::size_t shared_bytes;
    cudaStream_t stream;
    bool cooperative = false;
    bool programmatic = false;  // cudaLaunchAttributeProgrammaticStreamSerialization
    dim3 cluster{0};            // 0: as the kernel's declaration says
    int unknown_attribute = 0;
  };
  /// Returns how many there are now.
  std::size_t begin_launch(const LaunchConfiguration& launch) {
    pending_launches_.push_back(launch);
    return pending_launches_.size();
  }
  bool launches() const { return !pending_launches_.empty(); }
  /// The configuration of the latest one, which is over.
  LaunchConfiguration end_launch() {
    const LaunchConfiguration launch = pending_launches_.back();
    pending_launches_.pop_back();
    return launch;
  }
  /// Gives up all but the first `count` of them.
  void keep_launches(std::size_t count) {
    if (pending_launches_.size() > count) pending_launches_.resize(count);
  }
  ///@}

  /// For what it enqueues, outermost first.
  ///@{
  const std::vector<std::string>& labels() const { return labels_; }
  void push_label(const std::string& label) { labels_.push_back(label); }
  /// Without a label this does nothing.
  void pop_label() {
    if (!labels_.empty()) labels_.pop_back();
  }
  ///@}

  /// vgpu::host_waits().
  ///@{
  std::uint64_t waits() const { return waits_; }
  void count_wait() { ++waits_; }
  ///@}

  /// cudaStreamPerThread, by GPU.
  std::map<const void*, Stream*>& own_streams() { return own_streams_; }
  /// What libraries keep for each host thread.
  LibraryStates& libraries() { return libraries_; }

  /// Among those of one run_host_threads(); -1: the program's own.
  int number() const { return number_; }
  /// For reports: "host thread 3".
  const std::string& name() const { return name_; }
  hb::Context context() const { return context_; }

  /// What a thread waits for that is not running.
  struct Wait {
    std::function<bool()> reached;
    std::function<double()> time;  // when it goes on at the earliest, ns; asked once `reached` holds
    std::string what;              // for the deadlock report
    bool poll = false;             // it only looks; that it goes on changes nothing
  };
  /// nullptr: it runs, or has ended.
  const Wait* wait() const { return wait_; }
  void begin_wait(const Wait& wait) { wait_ = &wait; }
  void end_wait() { wait_ = nullptr; }
  bool ended() const { return ended_; }

 private:
  friend class HostThreads;  // makes threads, and switches between them

  int device_ = 0;
  cudaError_t last_error_ = cudaSuccess;
  double now_ = 0;
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeGlobal;
  std::vector<LaunchConfiguration> pending_launches_;
  std::vector<std::string> labels_;
  std::uint64_t waits_ = 0;
  LibraryStates libraries_;
  std::map<const void*, Stream*> own_streams_;

  int number_ = -1;
  std::string name_ = "the host";
  hb::Context context_ = nullptr;
  const Wait* wait_ = nullptr;
  bool ended_ = false;
  Fiber fiber_;             // of the first thread: where its own stack is suspended
  Fiber* stack_ = nullptr;  // of the others: what they run on, from the pool
  ExceptionState exceptions_;
};

}  // namespace vgpu
