// The file of --timeline: what the GPUs did and when, in the format of https://ui.perfetto.dev (Chrome's
// trace events). Modelled and measured timelines have the same form; tools/draw_timeline.py draws both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "overlap/options.hpp"
#include "overlap/timeline.hpp"

namespace overlap {

/// One operation on one piece of hardware.
struct TimelineEntry {
  static constexpr int kHost = -1;  ///< in `from` and `to`: memory of the host

  std::string kind = {};    ///< "kernel", "copy", "memset" or "host function"
  std::string name = {};    ///< of a kernel, as the compiler prints it; not needed for copies
  int gpu = 0;              ///< whose hardware it occupied
  std::string engine = {};  ///< for copies: "copies in", "copies out", ...; empty: the lane of the stream
  int stream_gpu = 0;       ///< where it was enqueued
  int stream = 0;           ///< the backend's number for it, another one for each stream of that GPU
  std::uint64_t bytes = 0;  ///< that a copy or memset writes
  int from = kHost;         ///< of a copy: a GPU, or kHost
  int to = kHost;           ///< of a copy or memset: a GPU, or kHost
  double begin_ns = 0;      ///< from any zero, the same for all GPUs
  double end_ns = 0;        ///< from the same zero
  std::vector<std::string> labels = {};  ///< of the open scopes and sections, outermost first
};

namespace backend {

/// Records all operations from now on. Throws UsageError, "--timeline: ...", if that is not possible here.
void record_timeline();

/// A label for what the calling host thread enqueues from now on; the labels of a thread are nested.
void push_timeline_label(const std::string& label);
/// The end of the innermost label of the calling host thread.
void pop_timeline_label();

/// All that has been recorded. The GPUs must be idle. Throws std::runtime_error if something was lost.
std::vector<TimelineEntry> timeline();

}  // namespace backend

/// The JSON text, on one time axis for each section; within a lane, nothing overlaps. Asks the GPUs for the
/// hardware stamp. Throws std::runtime_error if there is no entry.
std::string timeline_json(const std::string& chapter, std::vector<TimelineEntry> entries);

/// Writes what has been recorded to the file of --timeline; without that option does nothing. Throws
/// std::runtime_error; then no file is left behind and an old one stays.
void save_timeline(const ChapterInfo& chapter, const Options& options);

}  // namespace overlap
