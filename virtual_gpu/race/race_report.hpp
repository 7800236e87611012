// Lines of the program in reports.
#pragma once

#include <string>
#include <vector>

namespace vgpu {

/// A place in the program, as far as the debug information knows it.
struct ProgramLine {
  std::string text;      // "ring.cu:59"
  std::string function;  // "main"
};

/// The lines of a return address: several if functions were inlined there, innermost first; none in the
/// runtime's, the helpers' and the system's code.
std::vector<ProgramLine> program_lines(void* return_address);
/// What ThreadSanitizer makes of `format` for each function that was inlined there, innermost first (race
/// build).
std::vector<std::string> symbolized(void* return_address, const char* format);
/// Whether the source with this absolute path is the program's, not the runtime's, the helpers' or the
/// system's.
bool is_of_program(const std::string& path);

/// Picks, out of the lines of a call stack from the innermost on, the one that called the API.
class CallerLine {
 public:
  /// `through_kernel`: the innermost line is that of the kernel, which calls the runtime when it is launched.
  explicit CallerLine(bool through_kernel) : through_kernel_(through_kernel) {}
  /// True for the line that is looked for. The kernel's own may come several times, from parts that were
  /// split off.
  bool is(const ProgramLine& line) {
    if (!through_kernel_) return true;
    if (kernel_.text.empty()) kernel_ = line;
    return line.text != kernel_.text;
  }
  /// The kernel's line and function, once they have passed.
  const ProgramLine& kernel() const { return kernel_; }

 private:
  bool through_kernel_;
  ProgramLine kernel_;
};

}  // namespace vgpu
