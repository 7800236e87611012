// Records of the GPUs' operations, with times and labels: by CUPTI on real GPUs, by the scheduler on virtual
// ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace overlap {

/// A label that begins with this names a section.
inline constexpr char kTimelineSection = '\x1d';

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

/// What one link moved in a section, the stores and loads of kernels included that the backend counts.
struct LinkRecord {
  std::string section = {};         ///< its name
  int from = TimelineEntry::kHost;  ///< a GPU, or kHost
  int to = TimelineEntry::kHost;    ///< a GPU, or kHost
  std::uint64_t bytes = 0;          ///< of all ranks' calls
  std::uint64_t transfers = 0;      ///< copies, bulk copies and messages of NCCL
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

/// What the links moved in each section; no record of a link that moved nothing, nor of real GPUs, which do
/// not count.
std::vector<LinkRecord> timeline_links();

}  // namespace backend

}  // namespace overlap
