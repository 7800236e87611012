// The recorder of the timeline.
#pragma once

#include <string>

namespace vgpu {

class Operation;

/// Hardware that an operation occupied.
struct Span {
  int device;
  std::string engine;  // as in TimelineEntry
  double begin, end;   // modelled, ns
};

/// Keeps the entries of an operation that completes at modelled time `end`, ns, if a timeline is recorded.
void note_finished(const Operation& operation, double end);

}  // namespace vgpu
