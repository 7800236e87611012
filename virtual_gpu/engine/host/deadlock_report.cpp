#include "engine/host/deadlock_report.hpp"

#include <cstdio>

namespace vgpu {
namespace {

/// Returns false if there is nothing in any stream.
bool print_streams(const Devices& devices) {
  bool idle = true;
  for (const auto& device : devices) {
    for (const auto& stream : device->streams()) {
      const Operation* head = stream->head();
      if (head == nullptr) continue;
      idle = false;
      std::fprintf(stderr, "  %s: %s: %s; %zu more behind it\n", head->origin().c_str(),
                   head->describe().c_str(), head->progress().c_str(), stream->queue().size() - 1);
    }
  }
  return !idle;
}

}  // namespace

void report_unfinished(const Schedule& schedule, const Devices& devices) {
  std::fprintf(
      stderr,
      "virtual GPUs: main() has returned or exit() was called, and this work still waits for the host, which "
      "has not synchronised with it (%s)\n",
      schedule.describe().c_str());
  print_streams(devices);
}

void report_deadlock(const Schedule& schedule, const Devices& devices, const HostThreads& hosts) {
  std::fprintf(stderr, "virtual GPUs: deadlock: the host waits, and no work can go on (%s)\n",
               schedule.describe().c_str());
  // If there is none, what the host waits for is all that there is to say.
  const bool idle = !print_streams(devices);
  for (const auto& thread : hosts.all()) {
    if ((!hosts.several() && !idle) || thread->wait() == nullptr || thread->ended()) continue;
    std::fprintf(stderr, "  %s (GPU %d): waits for %s\n", thread->name().c_str(), thread->device(),
                 thread->wait()->what.c_str());
  }
}

}  // namespace vgpu
