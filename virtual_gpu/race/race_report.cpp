// Reports of the race build, in CUDA's words instead of ThreadSanitizer's.
#include "race/race_report.hpp"

#if VGPU_RACE

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "race/happens_before.hpp"
#include "race/race_advice.hpp"
#include "race/run_facts.hpp"

extern "C" {
void __sanitizer_symbolize_pc(void* pc, const char* format, char* buffer, std::size_t size);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
void* __tsan_get_current_report();
int __tsan_get_report_data(void* report, const char** description, int* count, int* stacks, int* accesses,
                           int* locations, int* mutexes, int* threads, int* unique_tids, void** sleep_trace,
                           unsigned long trace_size);
int __tsan_get_report_mop(void* report, unsigned long index, int* tid, void** address, int* size, int* write,
                          int* atomic, void** trace, unsigned long trace_size);
int __tsan_get_report_thread(void* report, unsigned long index, int* tid, unsigned long* os_id, int* running,
                             const char** name, int* parent_tid, void** trace, unsigned long trace_size);

// Read by ThreadSanitizer before main. One report is enough, because later ones may be consequences; but a
// report that is held back must not hide the next one of the same place.
const char* __tsan_default_options() {
  return "halt_on_error=1 exitcode=3 atexit_sleep_ms=0 history_size=7 report_signal_unsafe=0 "
         "suppress_equal_stacks=0 suppress_equal_addresses=0 "
         "handle_segv=0 handle_sigbus=0";  // as in the other builds (fault_handler.cpp)
}
}

namespace vgpu {
namespace {

constexpr int kExitRace = 3;

/// "cudaMemcpyAsync", "cublasSgemm", "ncclAllReduce", "cub::DeviceScan::ExclusiveSum": the function of CUDA
/// or of a library of it in which the return address lies; empty if it lies in none.
std::string api_function(void* return_address) {
  for (const std::string& function : symbolized(return_address, "%f")) {
    const std::string name = function.substr(0, function.find('('));
    const bool has_prefix = name.rfind("cu", 0) == 0 || name.rfind("nccl", 0) == 0;
    // What has a namespace or a template's return type before it is the runtime's own.
    if (has_prefix && name.find_first_of(" :<") == std::string::npos) return name;
  }
  return {};
}

void note_thread(Access& access, const hb::Mark& mark) {
  if (mark.kind == hb::Mark::kThread && !access.thread) access.thread = mark.number;
}

/// Splits the stack of an access at the mark between what ran and who enqueued it.
void read_stack(Access& access, void* const* trace) {
  int i = 0;
  for (; trace[i] != nullptr; ++i) {
    const hb::Mark mark = hb::mark(trace[i]);
    note_thread(access, mark);
    if (mark.kind == hb::Mark::kThread) continue;
    if (mark.kind != hb::Mark::kNone) break;
    for (const ProgramLine& line : program_lines(trace[i])) {
      if (access.line.empty()) {
        access.line = line.text;
        access.function = line.function;
      }
    }
  }
  if (trace[i] == nullptr) return;  // the host
  const hb::Mark called = hb::mark(trace[i]);
  access.number = called.number;
  const bool launched = called.kind == hb::Mark::kLaunch;
  if (called.kind == hb::Mark::kNamedCall) access.call = static_cast<const char*>(trace[++i]);
  CallerLine caller(launched);
  // Of an access that the runtime makes for a thread, the thread stands below the callers.
  for (++i; trace[i] != nullptr && (access.enqueued.empty() || (launched && !access.thread)); ++i) {
    note_thread(access, hb::mark(trace[i]));
    if (hb::mark(trace[i]).kind != hb::Mark::kNone) continue;
    if (!launched && access.call.empty()) access.call = api_function(trace[i]);
    for (const ProgramLine& line : program_lines(trace[i])) {
      if (access.enqueued.empty() && caller.is(line)) access.enqueued = line.text;
    }
  }
  // A kernel's body is a lambda without a name of its own.
  if (!caller.kernel().function.empty()) access.function = caller.kernel().function;
  if (access.line.empty()) access.line = caller.kernel().text;
}

std::string name_of_thread(void* report, int threads, int tid) {
  for (int i = 0; i < threads; ++i) {
    int found = 0, running = 0, parent = 0;
    unsigned long os_id = 0;
    const char* name = nullptr;
    void* trace[1] = {};
    __tsan_get_report_thread(report, i, &found, &os_id, &running, &name, &parent, trace, 1);
    if (found == tid && name != nullptr) return name;
  }
  return "the host";
}

constexpr const char* kScopesCure =
    "Both are atomic, but not for each other: block scope is for the threads of one block, device scope for "
    "those of one GPU. Give both a scope that includes both threads.";

std::string held_report;

/// The whole text of a report.
std::string text_of(void* report) {
  const char* description = nullptr;
  int count = 0, stacks = 0, accesses = 0, locations = 0, mutexes = 0, threads = 0, tids = 0;
  void* sleep_trace[1] = {};
  __tsan_get_report_data(report, &description, &count, &stacks, &accesses, &locations, &mutexes, &threads,
                         &tids, sleep_trace, 1);
  std::vector<Access> found;
  for (int i = 0; i < accesses; ++i) {
    Access access;
    int write = 0, atomic = 0;
    std::array<void*, 64> trace{};
    __tsan_get_report_mop(report, i, &access.tid, &access.address, &access.bytes, &write, &atomic,
                          trace.data(), trace.size() - 1);
    access.atomic = atomic != 0;
    access.write = write != 0 || (i == 0 && hb::ReadsForAWrite::active());  // the first one happens now
    access.who = name_of_thread(report, threads, access.tid);
    read_stack(access, trace.data());
    found.push_back(std::move(access));
  }
  std::string text = "virtual GPUs: ";
  text += description == nullptr || std::strcmp(description, "data-race") == 0 ? "data race" : description;
  if (found.size() == 2) {
    text += " in " + describe_memory(found[0].address);
    const std::string missing = are_scopes(found[0].address) ? kScopesCure : advice(found[1], found[0]);
    // ThreadSanitizer's order is the other way round: the access that has just happened comes first.
    for (const std::string& line : {what(found[1]), what(found[0]), missing}) text += "\n  " + line;
    text += '\n';
  }
  if (const std::string schedule = describe_schedule(); !schedule.empty()) text += "  " + schedule + '\n';
  return text;
}

[[noreturn]] void tell(const std::string& report) {
  std::fputs(report.c_str(), stderr);
  std::fflush(nullptr);
  _exit(kExitRace);
}

}  // namespace

std::vector<std::string> symbolized(void* return_address, const char* format) {
  std::array<char, 4096> buffer{};
  __sanitizer_symbolize_pc(return_address, format, buffer.data(), buffer.size() - 1);
  std::vector<std::string> frames;
  for (const char* frame = buffer.data(); *frame != '\0'; frame += std::strlen(frame) + 1)
    frames.emplace_back(frame);
  return frames;
}

std::vector<ProgramLine> program_lines(void* return_address) {
  std::vector<ProgramLine> lines;
  for (const std::string& text : symbolized(return_address, "%s:%l\t%f")) {
    const std::size_t tab = text.find('\t');
    const std::string place = text.substr(0, tab);
    if (!is_of_program(place)) continue;
    lines.push_back({place.substr(place.rfind('/') + 1), text.substr(tab + 1)});
  }
  return lines;
}

hb::LateReport::~LateReport() {
  if (held_report.empty()) return;
  enter(host_context());  // whose accesses are not ignored: ThreadSanitizer looks at that when a program ends
  tell(held_report);
}

}  // namespace vgpu

namespace __tsan {
class ReportDesc;
/// Replaces ThreadSanitizer's own (weak) hook: prints our report instead of its own. VGPU_FULL_RACE_REPORT=1
/// in the environment prints both.
bool OnReport(const ReportDesc*, bool suppressed) {
  if (suppressed) return true;
  // The report holds ThreadSanitizer's locks. It may call the program's instrumented copy of std::string,
  // where a second race would deadlock.
  __tsan_ignore_thread_begin();
  std::string text;
  if (!vgpu::hb::LateReport::holding() || vgpu::held_report.empty())
    text = vgpu::text_of(__tsan_get_current_report());
  if (std::getenv("VGPU_FULL_RACE_REPORT") != nullptr) {
    std::fputs(text.c_str(), stderr);
    return false;
  }
  if (!vgpu::hb::LateReport::holding()) vgpu::tell(text);
  if (!text.empty()) vgpu::held_report = text;
  __tsan_ignore_thread_end();
  return true;
}
}  // namespace __tsan

#endif
