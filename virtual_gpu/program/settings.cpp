// Linked into programs that know nothing of virtual GPUs (overlap_add_program): what such a program cannot
// ask for itself, its user sets in the environment. And what it cannot print: why a call has failed.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "vgpu/control.hpp"

namespace {

/// The number that the environment variable `name` holds. Throws std::invalid_argument.
template <class Number>
Number number(const char* name, const char* text) {
  Number value{};
  const char* end = text + std::strlen(text);
  const auto [last, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || last != end) {
    throw std::invalid_argument(std::string(name) + "='" + text + "' is not a number in range");
  }
  return value;
}

/// Before main(): nothing has called CUDA yet.
[[maybe_unused]] const bool settings_taken = [] {
  try {
    vgpu::print_errors();
    vgpu::count_host_code();
    if (const char* text = std::getenv("VGPU_MACHINE")) vgpu::use_machine(text);
    if (const char* text = std::getenv("VGPU_GPUS")) vgpu::use_gpus(number<int>("VGPU_GPUS", text));
    // Without a number: the order of time.
    if (const char* text = std::getenv("VGPU_SCHEDULE"); text != nullptr && *text != '\0') {
      vgpu::use_schedule(number<std::uint64_t>("VGPU_SCHEDULE", text));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "virtual GPUs: %s\n", error.what());
    std::exit(2);
  }
  return true;
}();

}  // namespace
