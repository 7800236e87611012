#include "overlap/gpu/timeline.hpp"

#include "overlap/gpu/timeline_record.hpp"

namespace overlap {

namespace detail {

void open_timeline_label(const std::string& name, bool section) {
  backend::push_timeline_label(section ? kTimelineSection + name : name);
}

void close_timeline_label() { backend::pop_timeline_label(); }

}  // namespace detail

}  // namespace overlap
