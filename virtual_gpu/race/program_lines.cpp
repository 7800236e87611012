// Lines of the program: by the tool addr2line, where ThreadSanitizer does not know them.
#include "race/race_report.hpp"

#if !VGPU_RACE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#endif
#include "race/happens_before.hpp"

namespace vgpu {

bool is_of_program(const std::string& path) {
  if (!path.starts_with("/") || path.starts_with("/usr/") || path.starts_with(VGPU_HELPERS_DIR)) return false;
  return !path.starts_with(VGPU_DIR) || path.starts_with(VGPU_DIR "tests/");
}

#if !VGPU_RACE

namespace {

/// The command that prints function and line of each function that was inlined there, innermost first.
std::string addr2line(void* return_address) {
  Dl_info info{};
  link_map* module = nullptr;
  if (dladdr1(return_address, &info, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0) return {};
  std::array<char, 4096> program{};
  const bool is_main = module->l_name[0] == '\0';  // its name may be relative to another folder
  if (is_main && readlink("/proc/self/exe", program.data(), program.size() - 1) < 0) return {};
  const std::string path = is_main ? program.data() : module->l_name;
  if (path.find('\'') != std::string::npos) return {};  // it would end the quotes, and what follows be run
  char address[32];
  std::snprintf(address, sizeof address, "%#zx",
                reinterpret_cast<std::uintptr_t>(return_address) - 1 - module->l_addr);
  return "addr2line -Cfi -e '" + path + "' " + address + " 2>/dev/null";
}

}  // namespace

std::vector<ProgramLine> program_lines(void* return_address) {
  const std::string command = addr2line(return_address);
  std::FILE* const output = command.empty() ? nullptr : popen(command.c_str(), "r");
  if (output == nullptr) return {};
  std::vector<ProgramLine> lines;
  std::array<char, 4096> buffer{};
  const auto next = [&] { return std::fgets(buffer.data(), buffer.size(), output) != nullptr; };
  while (next()) {
    std::string function = buffer.data();
    function.pop_back();
    if (!next()) break;
    const std::string place = buffer.data();  // "/a/ring.cu:59 (discriminator 2)\n"
    if (!is_of_program(place)) continue;
    const std::size_t name = place.rfind('/') + 1;
    lines.push_back({place.substr(name, place.find_first_of(" \n", name) - name), function});
  }
  pclose(output);
  return lines;
}

#endif

std::string hb::line_at(const void* return_address) {
  const std::vector<ProgramLine> lines = program_lines(const_cast<void*>(return_address));
  return lines.empty() ? "" : " at " + lines.front().text;
}

#if VGPU_RACE || VGPU_CHECK

std::string hb::describe(const CallSite& site) {
  CallerLine caller(site.through_kernel);
  for (int i = 0; i < site.size; ++i) {
    for (const ProgramLine& line : program_lines(site.frames[i])) {
      if (caller.is(line)) return line.text;
    }
  }
  return {};
}

#endif

#if VGPU_CHECK

hb::CallSite hb::call_site(bool through_kernel) {
  CallSite site;
  site.through_kernel = through_kernel;
  site.size = backtrace(site.frames.data(), static_cast<int>(site.frames.size()));
  return site;
}

#endif

}  // namespace vgpu
