// The timeline of virtual GPUs: their scheduler knows it.
#include <vgpu/timeline.hpp>

#include "overlap/gpu/timeline_record.hpp"

namespace overlap::backend {

static_assert(TimelineEntry::kHost == vgpu::kHost);

void record_timeline() { vgpu::record_timeline(); }

bool recording_timeline() { return vgpu::recording_timeline(); }

void push_timeline_label(const std::string& label) { vgpu::push_label(label); }

void pop_timeline_label() { vgpu::pop_label(); }

std::vector<TimelineEntry> timeline() {
  std::vector<TimelineEntry> entries;
  for (const vgpu::TimelineEntry& entry : vgpu::timeline()) {
    entries.push_back({.kind = entry.work.kind,
                       .name = entry.work.name,
                       .gpu = entry.device,
                       .engine = entry.engine,
                       .stream_gpu = entry.stream_device,
                       .stream = entry.stream,
                       .bytes = entry.work.bytes,
                       .from = entry.work.from,
                       .to = entry.work.to,
                       .begin_ns = entry.begin,
                       .end_ns = entry.end,
                       .labels = entry.labels});
  }
  return entries;
}

}  // namespace overlap::backend
