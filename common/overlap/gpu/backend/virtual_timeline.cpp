// The timeline of virtual GPUs, from their scheduler.
#include <map>
#include <string>
#include <vgpu/timeline.hpp>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/timeline_record.hpp"

namespace overlap::backend {
namespace {

static_assert(TimelineEntry::kHost == vgpu::kHost);

constexpr int kMaxGpus = 64;

using Links = std::map<std::pair<int, int>, vgpu::Traffic>;

Links moved_so_far() {
  Links links;
  for (int from = vgpu::kHost; from < kMaxGpus; ++from) {
    for (int to = vgpu::kHost; to < kMaxGpus; ++to) {
      const vgpu::Traffic moved = vgpu::traffic(from, to);
      if (moved.copies > 0) links[{from, to}] = moved;
    }
  }
  return links;
}

/// Before the first rank enters a section and after the last one has left it all GPUs are idle: so all bytes
/// that links move in between belong to the section.
struct Section {
  Links before, after;
};
std::map<std::string, Section> sections;
std::map<int, std::vector<std::string>> open_labels;  // by host thread

bool is_section(const std::string& label) { return label.starts_with(kTimelineSection); }

}  // namespace

void record_timeline() { vgpu::record_timeline(); }

bool recording_timeline() { return vgpu::recording_timeline(); }

void push_timeline_label(const std::string& label) {
  if (is_section(label) && !sections.contains(label)) sections[label].before = moved_so_far();
  open_labels[vgpu::host_thread()].push_back(label);
  vgpu::push_label(label);
}

void pop_timeline_label() {
  vgpu::pop_label();
  std::vector<std::string>& labels = open_labels[vgpu::host_thread()];
  if (is_section(labels.back())) sections[labels.back()].after = moved_so_far();
  labels.pop_back();
}

std::vector<LinkRecord> timeline_links() {
  std::vector<LinkRecord> records;
  for (const auto& [label, section] : sections) {
    for (const auto& [link, after] : section.after) {
      const auto found = section.before.find(link);
      const vgpu::Traffic before = found == section.before.end() ? vgpu::Traffic{} : found->second;
      if (after.copies == before.copies) continue;
      records.push_back({.section = label.substr(1),
                         .from = link.first,
                         .to = link.second,
                         .bytes = after.bytes - before.bytes,
                         .transfers = after.copies - before.copies});
    }
  }
  return records;
}

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
