#include "engine/timeline.hpp"

#include "engine/graph.hpp"
#include "engine/runtime.hpp"
#include "vgpu/timeline.hpp"

namespace vgpu {

void note_finished(const Operation& operation, double end) {
  if (!recording_timeline() || operation.only_waits()) return;
  const Stream& stream =
      operation.graph == nullptr ? *operation.stream : operation.graph->lane(operation.branch);
  std::vector<Span> spans = operation.spans;
  if (spans.empty()) spans.push_back({stream.device(), "", operation.occupied_from, end});
  for (Span& span : spans) {
    runtime().timeline.push_back({operation.work(), span.device, std::move(span.engine), stream.device(),
                                  stream.number(), operation.labels, span.begin, span.end});
  }
}

std::vector<TimelineEntry> timeline() {
  if (runtime_if_started() == nullptr) return {};
  const hb::RuntimeScope scope;
  return runtime().timeline;
}

// The labels are the runtime's memory: the race build must not take them for the program's.
void push_label(const std::string& label) {
  hb::start();
  const hb::RuntimeScope scope;
  runtime().host().labels.push_back(label);
}

void pop_label() {
  if (runtime_if_started() == nullptr) return;
  const hb::RuntimeScope scope;
  auto& labels = runtime().host().labels;
  if (!labels.empty()) labels.pop_back();
}

}  // namespace vgpu
