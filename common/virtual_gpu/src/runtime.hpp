// The state behind the API: devices, memory, scheduler, the host's clock, errors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device.hpp"
#include "machine.hpp"
#include "memory.hpp"
#include "scheduler.hpp"
#include "vgpu/types.h"

namespace vgpu {

/// An API call's failure: CUDA's code, and one sentence that says what the code does not.
class ApiError : public std::runtime_error {
 public:
  ApiError(cudaError_t code, const std::string& sentence) : std::runtime_error(sentence), code(code) {}
  cudaError_t code;
};

/// What belongs to one host thread in CUDA: the current device, the last error, and here its clock and
/// pending launch.
struct HostThread {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  double now = 0;  // modelled clock, ns

  struct LaunchConfiguration {
    dim3 grid, block;
    std::size_t shared_bytes;
    cudaStream_t stream;
  };
  // A stack: the arguments of a launch are evaluated after its configuration, and may launch kernels
  // themselves.
  std::vector<LaunchConfiguration> pending_launches;
};

class Runtime {
 public:
  Runtime(Machine machine, std::optional<std::uint64_t> seed);

  Device& device(int id) { return *devices[id]; }
  Device& current_device() { return *devices[host.device]; }
  /// The stream behind a handle. Throws cudaErrorInvalidResourceHandle for one that was never made or is
  /// destroyed.
  Stream& stream(cudaStream_t handle);
  Event& event(cudaEvent_t handle);

  /// Adds `operation` to the stream, behind what CUDA's rules order it after. Returns its token.
  Token enqueue(Stream& stream, std::unique_ptr<Operation> operation);
  /// Blocks the host until all tokens are complete (nullptr counts as complete). Throws after a deadlock or a
  /// fault.
  void wait(const std::vector<Token>& tokens);
  void wait(const Token& token) { wait(std::vector<Token>{token}); }
  /// Completions of all that the streams of a device hold.
  std::vector<Token> pending(Device& device);
  /// What a wait for the stream waits for: its own work and, for the default stream, that of all blocking
  /// streams.
  std::vector<Token> pending(Stream& stream);
  /// True if the host could know by now that all tokens are complete.
  bool observe(const std::vector<Token>& tokens);
  bool observe(const Token& token) { return observe(std::vector<Token>{token}); }

  /// A kernel went wrong. Every later call fails with `code`, as after a real GPU's sticky error.
  void fault(cudaError_t code, const std::string& sentence);
  void throw_if_faulted() const;
  cudaError_t sticky_error() const { return fault_ ? fault_->code : cudaSuccess; }

  Machine machine;
  std::vector<std::unique_ptr<Device>> devices;
  Memory memory;
  Scheduler scheduler;
  HostThread host;
  std::map<const void*, std::size_t> dynamic_shared_limits;  // cudaFuncSetAttribute, by kernel
  std::map<Event*, std::unique_ptr<Event>> events;
  std::map<std::pair<int, int>, Traffic> traffic;  // by source and destination
  std::string last_error_detail;
  bool deadlock_reported = false;
  bool in_host_function = false;  // a function of cudaLaunchHostFunc is running
  const std::thread::id thread = std::this_thread::get_id();

 private:
  void report_deadlock();

  std::optional<ApiError> fault_;
  std::uint64_t next_operation_ = 1;
  std::uint64_t idle_queries_ = 0;
};

/// The one runtime; made by the first call.
Runtime& runtime();
/// The same, nullptr before the first call.
Runtime* runtime_if_started();

/// What every API function runs in: charges the call to the host's clock, turns exceptions into CUDA's codes
/// and keeps them for cudaGetLastError.
template <class Function>
cudaError_t api_call(const char* name, Function function);

}  // namespace vgpu

#include "api_call.inl"
