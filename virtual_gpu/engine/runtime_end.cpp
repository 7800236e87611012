// What the virtual GPUs still do when main() returns or exit() is called.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "engine/kernel/block.hpp"
#include "engine/runtime.hpp"
#include "engine/streams/stream_call.hpp"

namespace vgpu {
namespace {

bool reported = false;
bool finishing = false;
bool inside = false;  // of a step, or while other host threads wait for their turn: nothing more can run

bool in_step() { return current_block() != nullptr || called_by_stream(); }

/// The tool that starts a program again and again asks for this (tools/race_runs.py).
void write_largest_grid(Runtime& runtime) {
  const char* path = hb::kEnabled ? std::getenv("VGPU_LARGEST_GRID") : nullptr;
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%llu\n", static_cast<unsigned long long>(runtime.kernels().largest_grid()));
  std::fclose(file);
}

void finish_work() {
  Runtime* runtime = runtime_if_started();
  if (runtime == nullptr) return;
  finishing = true;
  inside = in_step() || runtime->hosts().several();
  if (in_step()) return;
  const hb::RuntimeScope scope;
  const bool drained = inside || runtime->waits().drain();
  reported = !drained || runtime->errors().faulted();
  runtime->errors().print_if_untold();
  write_largest_grid(*runtime);
}

struct AtEnd {
  ~AtEnd() { finish_work(); }
};

/// Handlers run in the reverse of their order, so this one comes last: static objects are destroyed.
[[gnu::constructor(101)]] void register_last_handler() {
  std::atexit([] {
    // What destructors of static objects have run counts, too.
    Runtime* runtime = runtime_if_started();
    if (!reported && (runtime == nullptr || !runtime->errors().faulted())) return;
    std::fflush(nullptr);
    _exit(kExitReported);
  });
}

}  // namespace

// What finish_work() runs may call exit(), too.
bool ended_inside() { return inside || (finishing && in_step()); }

void watch_end() {
  // What has thread storage is destroyed before all static objects.
  static thread_local const AtEnd at_end;
  (void)at_end;
}

}  // namespace vgpu
