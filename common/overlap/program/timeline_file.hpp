// The file of --timeline: what the GPUs did and when, in the format of https://ui.perfetto.dev (Chrome's
// trace events). Modelled and measured timelines have the same form; tools/pages/draw_timeline.py draws both.
#pragma once

#include <string>
#include <vector>

#include "overlap/gpu/timeline_record.hpp"
#include "overlap/program/options.hpp"

namespace overlap {

/// The JSON text, on one time axis for each section; within a lane, nothing overlaps. Asks the GPUs for the
/// hardware stamp. Throws std::runtime_error if there is no entry.
std::string timeline_json(const std::string& chapter, std::vector<TimelineEntry> entries);

/// Writes what has been recorded to the file of --timeline; without that option does nothing. Throws
/// std::runtime_error; then no file is left behind and an old one stays.
void save_timeline(const ChapterInfo& chapter, const Options& options);

}  // namespace overlap
