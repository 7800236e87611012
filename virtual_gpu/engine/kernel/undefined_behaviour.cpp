// What -fsanitize=alignment, bounds-strict, integer-divide-by-zero, shift-exponent and float-cast-overflow
// call before code that is undefined (the interface of GCC and Clang). In kernels the first three are errors,
// in the check build also on the host. The last two, of one's own programs, are warnings.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "check/report.hpp"
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

/// "bins" of the line "++bins[i];": the compiler names the column of the bracket that closes the index. "" if
/// the file has another character there: it has changed, or a macro stands before it in the line.
std::string array_name(const SourceLocation& where) {
  std::ifstream file(where.file);
  std::string line;
  for (std::uint32_t i = 0; i < where.line && std::getline(file, line); ++i) {
  }
  const auto both_spaces = [](char a, char b) { return a == ' ' && b == ' '; };
  const std::size_t code = std::min(line.find_first_not_of(' '), line.size());
  // As the preprocessor leaves the line.
  line.erase(std::unique(line.begin() + static_cast<std::ptrdiff_t>(code), line.end(), both_spaces),
             line.end());
  std::size_t begin = where.column, end = 0;  // of the name, after the index has been passed
  if (begin == 0 || begin > line.size() || line[begin - 1] != ']') return {};
  const auto is_name = [&](std::size_t i) {
    const unsigned char c = static_cast<unsigned char>(line[i]);
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == ']' || line.compare(i, 2, "->") == 0 ||
           (i > 0 && line.compare(i - 1, 2, "->") == 0);
  };
  while (begin > 0 && is_name(begin - 1)) {
    int open = 0;
    do {
      --begin;
      open += (line[begin] == ']') - (line[begin] == '[');
    } while (open > 0 && begin > 0);
    if (end == 0) end = begin;
  }
  return line.substr(begin, end - begin);
}

/// The running thread, or the host, has done what the sentence says; `memory` ends it.
void refuse(const std::string& sentence, const SourceLocation& location, const void* caller, cudaError_t code,
            const std::string& memory = {}) {
  vgpu::Block* const block = vgpu::current_block();
  const std::string line = vgpu::at_line(caller);
  const std::string text = (block == nullptr ? "the host " : vgpu::running_thread()) + sentence +
                           (line.empty() ? location.text() : line) + memory;
  if constexpr (vgpu::memcheck::kEnabled) vgpu::memcheck::stop(text);
  if (block != nullptr) block->fault(text, code);
}

/// Warns once for each line of arithmetic that is defined on GPUs and undefined in g++: the result differs.
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
  vgpu::Block* const block = vgpu::current_block();
  if (block == nullptr || address % alignment == 0) return;  // host code may do it: these processors can
  const auto* memory = reinterpret_cast<const void*>(address);
  const std::string shared = block->describe_shared(memory);
  refuse("accessed a " + std::string(mismatch->type->name), mismatch->location, __builtin_return_address(0),
         cudaErrorMisalignedAddress,
         ", whose address is no multiple of " + std::to_string(alignment) + ": " +
             (shared.empty() ? vgpu::runtime().memory().locate(memory) : shared));
}
void __ubsan_handle_out_of_bounds(const OutOfBounds* access, std::uintptr_t index) {
  const std::string name = array_name(access->location);
  refuse("uses the index " + number(*access->index, index) + " of " +
             (name.empty() ? "" : "'" + name + "', ") + "an array that is an " + access->array->name,
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
