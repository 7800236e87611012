#include "engine/streams/timeline.hpp"

#include "engine/host/settings.hpp"
#include "engine/runtime.hpp"
#include "engine/streams/graph.hpp"

namespace vgpu {

void Timeline::add(const Operation& operation, double end) {
  if (operation.only_waits()) return;
  const Stream& stream =
      operation.graph == nullptr ? *operation.stream : operation.graph->lane(operation.branch);
  std::vector<Span> spans = operation.spans;
  if (spans.empty()) spans.push_back({stream.device(), "", operation.occupied_from, end});
  for (Span& span : spans) {
    entries_.push_back({operation.work(), span.device, std::move(span.engine), stream.device(),
                        stream.number(), operation.labels, span.begin, span.end});
  }
}

void note_finished(const Operation& operation, double end) {
  if (settings().records_timeline()) runtime().timeline().add(operation, end);
}

}  // namespace vgpu
