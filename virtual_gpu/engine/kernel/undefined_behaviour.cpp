// What -fsanitize=alignment, bounds, integer-divide-by-zero, shift-exponent and float-cast-overflow call
// before code that is undefined (the interface of GCC and Clang). In kernels the first three are errors, in
// the check build also on the host. The last two, of one's own programs, are warnings.
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "check/report.hpp"
#include "engine/hopper/caller_line.hpp"
#include "engine/kernel/block.hpp"
#include "engine/kernel/fault_handler.hpp"
#include "engine/runtime.hpp"

namespace {

struct SourceLocation {
  const char* file;
  std::uint32_t line, column;
  std::string text() const { return " at " + std::string(file) + ":" + std::to_string(line); }
};
struct TypeDescriptor {
  std::uint16_t kind,
      information;  // of an integer: twice the binary logarithm of its bits, and whether it is signed
  char name[1];
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  unsigned char log_alignment, access;
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor *array, *index;
};
struct Arithmetic {  // of a division the left operand alone
  SourceLocation location;
  const TypeDescriptor *left, *right;
};

std::string number(const TypeDescriptor& type, std::uintptr_t value) {
  const int unused = 64 - (1 << (type.information >> 1));
  const bool is_signed = (type.information & 1) != 0;
  if (unused < 0) return "a number of more than 64 bits";
  return is_signed ? std::to_string(static_cast<std::int64_t>(value << unused) >> unused)
                   : std::to_string(value);
}

/// The running thread, or the host, has done what the sentence says.
void refuse(const std::string& sentence, const SourceLocation& location, const void* caller,
            cudaError_t code) {
  vgpu::Block* const block = vgpu::current_block();
  const std::string line = vgpu::at_line(caller);
  const std::string text = (block == nullptr ? "the host " : vgpu::running_thread()) + sentence +
                           (line.empty() ? location.text() : line);
  if constexpr (vgpu::memcheck::kEnabled) vgpu::memcheck::stop(text);
  if (block != nullptr) block->fault(text, code);
}

/// Says once for each line that a kernel computes what g++ and GPUs define otherwise. Of values, real GPUs
/// make something that programs may count on; here it is something else.
void warn_of_arithmetic(const SourceLocation& where, const std::string& sentence) {
  static std::set<std::pair<std::string, std::uint32_t>> lines;
  if (vgpu::current_block() == nullptr || !lines.emplace(where.file, where.line).second) return;
  std::fprintf(stderr, "virtual GPUs: warning: %s%s%s\n", vgpu::running_thread().c_str(), sentence.c_str(),
               where.text().c_str());
}

}  // namespace

extern "C" {
void __ubsan_handle_type_mismatch_v1(const TypeMismatch* mismatch, std::uintptr_t address) {
  const std::uintptr_t alignment = std::uintptr_t{1} << mismatch->log_alignment;
  // Host code may do it: these processors can.
  if (vgpu::current_block() == nullptr || address % alignment == 0) return;
  const auto* memory = reinterpret_cast<const void*>(address);
  refuse("accessed a " + std::string(mismatch->type->name) + " whose address is no multiple of " +
             std::to_string(alignment) + ", " + vgpu::runtime().memory().locate(memory),
         mismatch->location, __builtin_return_address(0), cudaErrorMisalignedAddress);
}
void __ubsan_handle_out_of_bounds(const OutOfBounds* access, std::uintptr_t index) {
  refuse("uses the index " + number(*access->index, index) + " of an array that is an " + access->array->name,
         access->location, __builtin_return_address(0), cudaErrorIllegalAddress);
}
void __ubsan_handle_divrem_overflow(const Arithmetic* division, std::uintptr_t, std::uintptr_t) {
  refuse("divided an integer by zero", division->location, __builtin_return_address(0),
         cudaErrorLaunchFailure);
}
void __ubsan_handle_shift_out_of_bounds(const Arithmetic* shift, std::uintptr_t, std::uintptr_t) {
  warn_of_arithmetic(shift->location,
                     std::string("shifts a ") + shift->left->name +
                         " by its width or more (real GPUs: zeros or signs, here other bits)");
}
void __ubsan_handle_float_cast_overflow(const Arithmetic* conversion, std::uintptr_t) {
  warn_of_arithmetic(conversion->location,
                     std::string("converts a number that is no ") + conversion->right->name +
                         " (real GPUs: the nearest one, and 0 for NaN; here another one)");
}
}
