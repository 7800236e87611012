// What a report says of two accesses that race: each in a line, and what lacks between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vgpu {

struct Access {
  int tid = 0;
  void* address = nullptr;
  int bytes = 0;
  bool write = false, atomic = false;
  std::string who;                      // "gpu1/stream2", "the host"
  std::string line;                     // of the access itself; empty if the runtime made it
  std::string function;                 // that line's
  std::string enqueued;                 // line that enqueued the operation; empty for the host's own code
  std::string call;                     // what that line called if it is no launch: "cublasSgemm"
  std::uint64_t number = 0;             // of that call (hb::CallSite)
  std::optional<std::uint64_t> thread;  // of a kernel, if it is known: see kernel_thread()
};

/// "write by gpu1/stream2: kernel 'multiply' at x.cuh:31, block (0,0,0), thread (7,0,0), enqueued at
/// x.cuh:40".
std::string what(const Access& access);

/// What lacks between them. `first` ran first.
std::string advice(const Access& first, const Access& second);

}  // namespace vgpu
