// What a program leaves behind for scripts: JSON.
#pragma once

#include <string>
#include <string_view>

#include "overlap/bench/results.hpp"
#include "overlap/bench/table.hpp"
#include "overlap/program/options.hpp"

namespace overlap {

/// The commit that the program was built from (git describe --always --dirty), or "unknown".
std::string_view commit();

/// Results that can be written as JSON, with all that is needed to judge them: the chapter, the options, the
/// hardware, whether times are modelled, the date and the commit.
class Report : public Results {
 public:
  Report(const ChapterInfo& chapter, const Options& options);

  /// The JSON text. Asks the GPUs for the hardware stamp.
  std::string json() const;
  /// Writes the JSON to the file of --json; without that option, or if another
  /// process tells, writes nothing. Call it last: a file says
  /// "status": "ok". Throws Skip if all variants are skipped; std::runtime_error if the file cannot be
  /// written; then no file is left behind and an old one stays.
  void save() const;

 private:
  std::string chapter_;
  Options options_;
};

/// Throws UsageError, one sentence that starts with `option`, if no file `path` could be written: the folder
/// is missing or closed, or something else has that name. Leaves nothing behind.
void require_writable(const std::string& option, const std::string& path);

/// Writes the whole text to `path`, or nothing: it is written beside it first and then renamed.
/// Throws std::runtime_error.
void write_file(const std::string& path, std::string_view text);

}  // namespace overlap
