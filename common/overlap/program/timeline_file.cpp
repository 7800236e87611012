#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "overlap/gpu/backend.hpp"
#include "overlap/program/report.hpp"
#include "overlap/program/timeline_file.hpp"
#include "overlap/program/utc_now.hpp"

namespace overlap {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fixed(value, value == std::floor(value) ? 0 : 1) + " " + kUnits[unit];
}

std::string place_text(int place) {
  return place == TimelineEntry::kHost ? "host" : "GPU " + std::to_string(place);
}

// "overlap::multiply<int, 3> [with T = int]" -> "multiply". A library's sentence stays as it is.
std::string short_kernel_name(const std::string& name) {
  std::string text;
  int depth = 0;
  for (const char c : name.substr(0, name.find(" [with "))) {
    if (c == '<') ++depth;
    if (depth == 0) text += c;
    if (c == '>' && --depth < 0) return name;
  }
  if (depth != 0 || text.empty() || text.find(' ') != std::string::npos) return name;
  const std::size_t space = text.rfind("::");
  return space == std::string::npos ? text : text.substr(space + 2);
}

// What the operation does, in a few words.
std::string short_text(const TimelineEntry& entry) {
  if (entry.kind == "copy")
    return "copy " + bytes_text(entry.bytes) + " " + place_text(entry.from) + " -> " + place_text(entry.to);
  if (entry.kind == "memset") return "memset " + bytes_text(entry.bytes) + " " + place_text(entry.to);
  return short_kernel_name(entry.name);
}

// The colour group. A collective is a kernel to the GPU, but not to the reader.
std::string category(const TimelineEntry& entry) {
  const bool nccl = entry.kind == "kernel" && entry.name.find("nccl") != std::string::npos;
  return nccl ? "collective" : entry.kind;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " / ") + word;
  return text;
}

struct Bar {
  TimelineEntry entry;
  std::string section;
  std::vector<std::string> scopes;
};

// The innermost section of each entry, and the scopes. If there are sections, entries outside are dropped.
std::vector<Bar> bars_of(std::vector<TimelineEntry> entries) {
  std::vector<Bar> bars;
  bool any_section = false;
  for (TimelineEntry& entry : entries) {
    if (!(entry.end_ns > entry.begin_ns)) continue;  // an entry without duration has no bar
    Bar bar;
    for (std::string& label : entry.labels) {
      if (label.starts_with(kTimelineSection)) {
        bar.section = label.substr(1);
        any_section = true;
      } else {
        bar.scopes.push_back(std::move(label));
      }
    }
    bar.entry = std::move(entry);
    bars.push_back(std::move(bar));
  }
  if (any_section) std::erase_if(bars, [](const Bar& bar) { return bar.section.empty(); });
  return bars;
}

// Streams first, then copy engines.
using LaneKey = std::tuple<int, int, std::string>;  // rank, stream, name

LaneKey lane_of(const TimelineEntry& entry) {
  static constexpr std::array kEngines = {"copies in", "copies out", "copies to GPUs", "copies from GPUs"};
  if (entry.engine.empty()) return {0, entry.stream, "stream " + std::to_string(entry.stream)};
  const auto engine = std::find(kEngines.begin(), kEngines.end(), entry.engine);
  return {1 + static_cast<int>(engine - kEngines.begin()), 0, entry.engine};
}

// Spreads bars that overlap over several lanes. Bars that only touch may overlap by a rounding error.
std::vector<std::vector<Bar>> without_overlap(std::vector<Bar> bars) {
  constexpr double kRoundingError = 0.5;  // ns
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.entry.begin_ns < b.entry.begin_ns; });
  std::vector<std::vector<Bar>> lanes;
  for (Bar& bar : bars) {
    const auto lane = std::find_if(lanes.begin(), lanes.end(), [&bar](const std::vector<Bar>& earlier) {
      return earlier.back().entry.end_ns <= bar.entry.begin_ns + kRoundingError;
    });
    if (lane == lanes.end()) {
      lanes.push_back({std::move(bar)});
    } else {
      bar.entry.begin_ns = std::max(bar.entry.begin_ns, lane->back().entry.end_ns);
      lane->push_back(std::move(bar));
    }
  }
  return lanes;
}

Json metadata(const char* what, int pid, int tid, Json arguments) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", std::move(arguments)}};
}

// Whole nanoseconds, written as microseconds.
double microseconds(double ns) { return std::round(ns) / 1000; }

Json event(const Bar& bar, int pid, int tid, double zero) {
  const TimelineEntry& entry = bar.entry;
  const std::string what = short_text(entry);
  Json arguments = {{"what", what}};
  if (!bar.scopes.empty()) arguments["scope"] = joined(bar.scopes);
  if (entry.kind == "kernel" && entry.name != what) arguments["kernel"] = entry.name;
  if (entry.kind == "copy" || entry.kind == "memset") arguments["bytes"] = entry.bytes;
  if (entry.stream_gpu != entry.gpu) arguments["stream_gpu"] = entry.stream_gpu;
  arguments["stream"] = entry.stream;
  const double begin = std::round(entry.begin_ns - zero), end = std::round(entry.end_ns - zero);
  return {{"ph", "X"},
          {"name", bar.scopes.empty() ? what : bar.scopes.back()},
          {"cat", category(entry)},
          {"pid", pid},
          {"tid", tid},
          {"ts", microseconds(begin)},
          {"dur", microseconds(end - begin)},
          {"args", std::move(arguments)}};
}

// One process for each GPU of a section. Their numbers are never 0, and thread numbers differ everywhere:
// viewers take thread 0 for an idle loop.
void add_gpu(Json& events, const std::string& section, int pid, int gpu, const std::vector<Bar>& bars,
             double zero) {
  const std::string name = "GPU " + std::to_string(gpu);
  events.push_back(
      metadata("process_name", pid, 0, {{"name", section.empty() ? name : section + ": " + name}}));
  events.push_back(metadata("process_sort_index", pid, 0, {{"sort_index", pid}}));
  events.push_back(metadata("process_labels", pid, 0, {{"labels", section}, {"gpu", gpu}}));
  std::map<LaneKey, std::vector<Bar>> lanes;
  for (const Bar& bar : bars) lanes[lane_of(bar.entry)].push_back(bar);
  int tid = 1000 * pid;
  for (auto& [key, lane_bars] : lanes) {
    int copies = 0;
    for (const std::vector<Bar>& lane : without_overlap(std::move(lane_bars))) {
      ++tid;
      ++copies;
      const std::string lane_name =
          std::get<2>(key) + (copies > 1 ? " (" + std::to_string(copies) + ")" : "");
      events.push_back(metadata("thread_name", pid, tid, {{"name", lane_name}}));
      events.push_back(metadata("thread_sort_index", pid, tid, {{"sort_index", tid}}));
      for (const Bar& bar : lane) events.push_back(event(bar, pid, tid, zero));
    }
  }
}

}  // namespace

std::string timeline_json(const std::string& chapter, std::vector<TimelineEntry> entries) {
  const std::vector<Bar> bars = bars_of(std::move(entries));
  if (bars.empty()) throw std::runtime_error("--timeline: the GPUs had nothing to do");

  std::vector<std::string> sections;                                  // in the order in which they began
  std::map<std::string, std::map<int, std::vector<Bar>>> by_section;  // and by GPU
  std::map<std::string, double> zeros;
  for (const Bar& bar : bars) {
    const auto [zero, added] = zeros.try_emplace(bar.section, bar.entry.begin_ns);
    zero->second = std::min(zero->second, bar.entry.begin_ns);
    if (added) sections.push_back(bar.section);
    by_section[bar.section][bar.entry.gpu].push_back(bar);
  }
  std::stable_sort(sections.begin(), sections.end(),
                   [&zeros](const auto& a, const auto& b) { return zeros[a] < zeros[b]; });

  Json stamp = {
      {"chapter", chapter},         {"backend", backend::name()}, {"modelled", backend::modelled_time()},
      {"hardware", Json::object()}, {"date", utc_now()},          {"commit", commit()}};
  for (const auto& [name, value] : backend::hardware()) stamp["hardware"][name] = value;
  for (const LinkRecord& link : backend::timeline_links()) {
    stamp["moved"][link.section].push_back(
        {{"from", link.from}, {"to", link.to}, {"bytes", link.bytes}, {"transfers", link.transfers}});
  }
  Json events = Json::array();
  for (std::size_t i = 0; i < sections.size(); ++i) {
    for (const auto& [gpu, gpu_bars] : by_section[sections[i]]) {
      const int pid = 100 * (static_cast<int>(i) + 1) + gpu;
      add_gpu(events, sections[i], pid, gpu, gpu_bars, zeros[sections[i]]);
    }
  }
  // One event a line: files stay small, and can be compared.
  std::string text =
      "{\"displayTimeUnit\": \"ns\",\n\"otherData\": " + stamp.dump() + ",\n\"traceEvents\": [";
  for (const Json& event : events) text += (text.back() == '[' ? "\n" : ",\n") + event.dump();
  return text + "\n]}\n";
}

void save_timeline(const ChapterInfo& chapter, const Options& options) {
  if (!options.timeline.empty())
    write_file(options.timeline, timeline_json(chapter.name, backend::timeline()));
}

}  // namespace overlap
