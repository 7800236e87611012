// Names for what --timeline records. Without that option both classes cost one branch.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace overlap {

namespace backend {
/// True from record_timeline() on (timeline_file.hpp).
bool recording_timeline();
}  // namespace backend

namespace detail {

inline std::string timeline_text(std::string_view text) { return std::string(text); }
std::string timeline_text(std::integral auto number) { return std::to_string(number); }

void open_timeline_label(const std::string& name, bool section);
void close_timeline_label();

}  // namespace detail

/// Names the operations that this host thread enqueues until the end of the scope:
///   const TimelineScope name("step ", step, ": multiply shard ", shard);
/// The parts, texts and whole numbers, are joined only if a timeline is recorded. Scopes may be nested: the
/// innermost names the operation's bar, and all of them, "outer / inner", stand in its details.
class TimelineScope {
 public:
  template <typename... Parts>
  explicit TimelineScope(const Parts&... parts) : open_(backend::recording_timeline()) {
    if (open_) detail::open_timeline_label((detail::timeline_text(parts) + ...), false);
  }
  ~TimelineScope() {
    if (open_) detail::close_timeline_label();
  }
  TimelineScope(const TimelineScope&) = delete;
  TimelineScope& operator=(const TimelineScope&) = delete;

 private:
  bool open_;
};

/// What this host thread enqueues until the end of the scope is a section of the timeline, with a time axis
/// of its own that begins at 0: one run of a variant, say. Sections of the same name, on other host threads,
/// are one. A program that opens sections has nothing else in its timeline; one that opens none has all of
/// it.
class TimelineSection {
 public:
  /// Opens no section unless `when`: so that a loop can pick its last iteration.
  explicit TimelineSection(std::string_view name, bool when = true)
      : open_(when && backend::recording_timeline()) {
    if (open_) detail::open_timeline_label(std::string(name), true);
  }
  ~TimelineSection() {
    if (open_) detail::close_timeline_label();
  }
  TimelineSection(const TimelineSection&) = delete;
  TimelineSection& operator=(const TimelineSection&) = delete;

 private:
  bool open_;
};

}  // namespace overlap
