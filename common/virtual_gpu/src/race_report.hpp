// Reports of the race build, in CUDA's words instead of ThreadSanitizer's.
#pragma once

#include <string>

namespace vgpu {

/// A place in the program, as far as the debug information knows it.
struct ProgramLine {
  std::string text;      // "ring.cu:59"; empty for the runtime's and the system's own code
  std::string function;  // "main"
};

/// The line of a return address, the innermost one if functions were inlined there.
ProgramLine program_line(void* return_address);

}  // namespace vgpu
