// Mutation without a build: a synchronising call is left out, or all that run are listed.
#include "race/happens_before.hpp"
#include "race/race_report.hpp"

#if VGPU_RACE

#include <execinfo.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace vgpu::hb {
namespace {

const char* const dropped = std::getenv("VGPU_DROP");
const char* const list = std::getenv("VGPU_SYNC_SITES");

using Stack = std::array<void*, 32>;  // return addresses, innermost first

/// The program's lines of the stack, innermost first, each as a tab and "path:line".
std::string lines_of(const Stack& stack) {
  std::string lines;
  for (void* const address : stack) {
    if (address == nullptr) break;
    for (const std::string& place : symbolized(address, "%s:%l")) {
      const bool own = place.starts_with(VGPU_DIR) && !place.starts_with(VGPU_DIR "tests/");
      if (place.starts_with("/") && !place.starts_with("/usr/") && !own) lines += '\t' + place;
    }
  }
  return lines;
}

/// Looks at a stack that is met for the first time.
bool look_at(const char* name, const Stack& stack) {
  const std::string lines = lines_of(stack);
  if (list != nullptr) {
    std::FILE* file = std::fopen(list, "a");
    if (file == nullptr) std::abort();
    std::fprintf(file, "%s%s\n", name, lines.c_str());
    std::fclose(file);
  }
  return dropped != nullptr && (lines + '\t').find('/' + std::string(dropped) + '\t') != std::string::npos;
}

}  // namespace

const bool watches_calls = dropped != nullptr || list != nullptr;

bool is_left_out(const char* name) {
  start();
  const RuntimeScope scope;
  static std::map<Stack, bool> known;
  Stack stack{};
  backtrace(stack.data(), static_cast<int>(stack.size()));
  const auto [found, is_new] = known.try_emplace(stack, false);
  if (is_new) found->second = look_at(name, stack);
  return found->second;
}

}  // namespace vgpu::hb

#endif
