// The check build's sentence about an access.
#include "check/report.hpp"

#if VGPU_CHECK

#include <unistd.h>

#include <cstdio>

#include "engine/kernel/block.hpp"
#include "engine/kernel/fault_handler.hpp"
#include "engine/runtime.hpp"
#include "engine/streams/stream_call.hpp"

namespace vgpu {
namespace {

/// Where the access is. A helper around the program may make it, so its callers count, too.
std::string line_of(const void* caller) {
  if (const std::string line = at_line(caller); !line.empty()) return line;
  const std::string line = hb::describe(hb::call_site());
  return line.empty() ? "" : " at " + line;
}

/// "byte 4 of a cudaMalloc of 16 bytes on GPU 0".
std::string describe_bytes(const void* memory) {
  const Block* const block = current_block();
  const std::string shared = block == nullptr ? "" : block->describe_shared(memory);
  return shared.empty() ? runtime().memory().describe(memory) : shared;
}

std::string locate(const void* memory) {
  const Block* const block = current_block();
  const std::string shared = block == nullptr ? "" : block->shared().locate(memory);
  return shared.empty() ? runtime().memory().locate(memory) : shared + block->launch().enqueued_at();
}

std::string describe_fault(const memcheck::Finding& finding) {
  const Allocation* const memory = runtime().memory().find(finding.first);
  switch (finding.fault) {
    case memcheck::Fault::kOutside:
      return ": " + locate(finding.first);
    case memcheck::Fault::kUnwritten:
      return " that nothing has written: " + describe_bytes(finding.first);
    case memcheck::Fault::kForeign:
      break;
  }
  const Block* const block = current_block();
  if (block == nullptr) return ", which only GPUs can access: " + describe_bytes(finding.first);
  const std::string gpu = std::to_string(block->launch().stream->device());
  return ", which GPU " + gpu + " cannot access without cudaDeviceEnablePeerAccess(" +
         (memory == nullptr ? "" : std::to_string(memory->device)) + ", 0): " + describe_bytes(finding.first);
}

}  // namespace

void memcheck::stop(const std::string& sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "virtual GPUs: %s\n", sentence.c_str());
  std::fflush(nullptr);
  _exit(kExitReported);
}

void memcheck::report(const Finding& finding) {
  enter(in_runtime());
  const std::string who = current_block() != nullptr ? running_thread()
                          : called_by_stream()       ? "a function that a stream calls "
                                                     : "the host ";
  stop(who + (finding.write ? "writes " : "reads ") + std::to_string(finding.bytes) +
       (finding.bytes == 1 ? " byte" : " bytes") + line_of(finding.caller) + describe_fault(finding));
}

}  // namespace vgpu

namespace vgpu::hb {
namespace {

void access(const CallSite& site, const void* memory, std::size_t bytes, bool write, const void* caller) {
  const void* const first = memcheck::access(memory, bytes, write);
  if (first == nullptr) return;
  const std::string line = caller == nullptr ? " at " + describe(site) : at_line(caller);
  memcheck::stop("an operation that was issued" + line + (write ? " writes " : " reads ") +
                 std::to_string(bytes) + " bytes: " + locate(first));
}

}  // namespace

void read(Context, const CallSite& site, const void* memory, std::size_t bytes, const void* caller) {
  access(site, memory, bytes, false, caller);
}
void write(Context, const CallSite& site, const void* memory, std::size_t bytes, const void* caller) {
  access(site, memory, bytes, true, caller);
}

}  // namespace vgpu::hb

#endif
