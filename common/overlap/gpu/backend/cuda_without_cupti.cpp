// Real GPUs, where the toolkit has no CUPTI: no timeline.
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/timeline_record.hpp"

namespace overlap::backend {

void record_timeline() {
  throw UsageError("--timeline: this program was built without CUPTI, the CUDA toolkit's recorder");
}

bool recording_timeline() { return false; }

void push_timeline_label(const std::string& /*label*/) {}

void pop_timeline_label() {}

std::vector<TimelineEntry> timeline() { return {}; }

std::vector<LinkRecord> timeline_links() { return {}; }

}  // namespace overlap::backend
