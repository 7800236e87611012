// The recorder of the timeline.
#pragma once

#include <string>
#include <vector>

#include "vgpu/timeline.hpp"

namespace vgpu {

class Operation;

/// Hardware that an operation occupied.
struct Span {
  int device;
  std::string engine;  // as in TimelineEntry
  double begin, end;   // modelled, ns
};

class Timeline {
 public:
  /// Keeps the entries of an operation that completes at modelled time `end`, ns.
  void add(const Operation& operation, double end);
  const std::vector<TimelineEntry>& entries() const { return entries_; }

 private:
  std::vector<TimelineEntry> entries_;
};

/// Tells the timeline, if one is recorded, that an operation completes at modelled time `end`, ns.
void note_finished(const Operation& operation, double end);

}  // namespace vgpu
