// Records of the virtual GPUs' operations on the modelled clock: bars for a drawing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control.hpp"

namespace vgpu {

/// The part of an operation that a timeline shows.
struct Work {
  std::string kind;         // "kernel" (also a library's), "copy", "memset" or "host function"
  std::string name = {};    // a kernel's name, or a sentence
  std::uint64_t bytes = 0;  // that a copy or a memset writes
  int from = kHost;         // of a copy: a GPU, or kHost
  int to = kHost;           // of a copy or a memset: a GPU, or kHost
};

/// One operation on one engine. A copy through the host's memory occupies two copy engines: two entries.
struct TimelineEntry {
  Work work;
  int device;          // the GPU whose hardware it occupied
  std::string engine;  // the copy engines: "copies in" (from the host), "copies out", "copies to GPUs",
                       // "copies within"; "": the multiprocessors, or the host on behalf of a stream
  int stream_device;   // the stream that it was enqueued into, and its number on that GPU; 0: the default one
  int stream;
  std::vector<std::string> labels;  // of the host thread when it enqueued it, outermost first
  // Modelled, ns. It begins when it occupies the hardware, not when it starts to wait for it.
  double begin, end;
};

/// Records an entry for each operation that finishes from now on, except event records and waits. Changes
/// neither schedule nor modelled times. May be called at any time.
void record_timeline();
bool recording_timeline();

/// The entries so far, in the order in which the operations finished in the schedule.
std::vector<TimelineEntry> timeline();

/// Labels what the calling host thread enqueues until the matching pop_label().
void push_label(const std::string& label);
/// Without a label this does nothing.
void pop_label();

}  // namespace vgpu
