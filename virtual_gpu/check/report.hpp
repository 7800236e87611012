// What the hooks have found. The engine defines report(): this room knows nothing of it.
#pragma once

#include <cstddef>
#include <string>

namespace vgpu::memcheck {

/// kOutside: no owner. kForeign: the running code may not access it. kUnwritten: never written.
enum class Fault { kOutside, kForeign, kUnwritten };

struct Finding {
  const void* memory;
  std::size_t bytes;
  const void* first;  // of the bytes for which that is so
  bool write;
  Fault fault;
  const void* caller;  // a return address into the program
};

/// Says it in a sentence and ends the program with status 3.
[[noreturn]] void report(const Finding& finding);
/// The same of a sentence.
[[noreturn]] void stop(const std::string& sentence);

}  // namespace vgpu::memcheck
