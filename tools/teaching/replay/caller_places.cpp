#include "caller_places.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

namespace overlap::teaching {
namespace {

/// Lines of the helpers around a program, as in race reports: a reader looks for the line of the chapter.
bool is_ours(const std::string& place) {
  return !place.starts_with("/") || place.starts_with("/usr/") || place.starts_with(REPLAY_COMMON_DIR) ||
         place.starts_with(REPLAY_OWN_DIR);
}

/// What a command prints; empty if it cannot be run.
std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  if (pipe == nullptr) return output;
  char buffer[4096];
  for (std::size_t read; (read = std::fread(buffer, 1, sizeof buffer, pipe.get())) > 0;)
    output.append(buffer, read);
  return output;
}

/// Of each address in this program: its line, or that of the function that it was inlined in; empty if all of
/// them are ours.
std::map<std::uintptr_t, std::string> lines_of(const std::set<std::uintptr_t>& addresses) {
  std::map<std::uintptr_t, std::string> lines;
  if (addresses.empty()) return lines;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::string command = "addr2line -a -i -e '" + program + "'";
  for (const std::uintptr_t address : addresses) {
    char text[32];
    std::snprintf(text, sizeof text, " 0x%zx", static_cast<std::size_t>(address));
    command += text;
  }
  std::istringstream output(output_of(command + " 2>/dev/null"));
  std::uintptr_t address = 0;
  for (std::string line; std::getline(output, line);) {
    if (line.starts_with("0x")) {
      address = static_cast<std::uintptr_t>(std::stoull(line, nullptr, 16));
      continue;
    }
    const std::string place = line.substr(0, line.find(" (discriminator"));
    if (!is_ours(place) && lines[address].empty()) lines[address] = place.substr(place.rfind('/') + 1);
  }
  return lines;
}

}  // namespace

std::size_t CallerPlaces::here() {
  Stack stack{};
  backtrace(stack.data(), kFrames);
  return numbers_.emplace(stack, numbers_.size()).first->second;
}

std::vector<std::string> CallerPlaces::resolve() const {
  Dl_info here{};
  link_map* loaded = nullptr;
  dladdr1(reinterpret_cast<const void*>(&is_ours), &here, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP);
  const std::uintptr_t base = loaded->l_addr;
  // The call itself ends before its return address.
  const auto offset = [&](void* frame) { return reinterpret_cast<std::uintptr_t>(frame) - base - 1; };
  std::set<std::uintptr_t> addresses;
  for (const auto& [stack, number] : numbers_) {
    for (void* const frame : stack) {
      Dl_info info{};
      if (frame != nullptr && dladdr(frame, &info) != 0 && info.dli_fbase == here.dli_fbase)
        addresses.insert(offset(frame));
    }
  }
  const std::map<std::uintptr_t, std::string> lines = lines_of(addresses);
  std::vector<std::string> places(numbers_.size());
  for (const auto& [stack, number] : numbers_) {
    for (void* const frame : stack) {
      const auto found = frame == nullptr ? lines.end() : lines.find(offset(frame));
      if (found == lines.end() || found->second.empty()) continue;
      places[number] = found->second;
      break;
    }
  }
  return places;
}

}  // namespace overlap::teaching
