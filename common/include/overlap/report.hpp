// What a program leaves behind: a table for people, JSON for scripts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "overlap/options.hpp"
#include "overlap/regime.hpp"

namespace overlap {

/// The commit that the program was built from (git describe --always --dirty), or "unknown".
std::string_view commit();

/// Collects results and writes them as JSON, with all that is needed to judge them: the chapter, the options,
/// the hardware, whether times are modelled, the date and the commit.
class Report {
 public:
  /// A value in a result.
  using Value = std::variant<std::int64_t, double, std::string>;
  /// The fields of one result: names and values, in this order.
  using Fields = std::vector<std::pair<std::string, Value>>;

  /// A report without results.
  Report(const ChapterInfo& chapter, const Options& options);

  /// Adds one object to "results", its fields in this order. Throws std::invalid_argument if a number is not
  /// finite (JSON has no such number).
  void add_result(Fields fields);

  /// Adds a variant that was chosen and cannot run here: its name, "status": "skipped" and the reason. Its
  /// name once is enough.
  void add_skipped(const std::string& variant, const std::string& reason);

  /// Runs a part of the program, which measures the chosen variant of that name. If it throws Skip, the rest
  /// of the program goes on without it: says so, and adds it to those that are skipped. Called by all ranks,
  /// on which the part is skipped for the same reason; `is_first` on the one that prints and has the report.
  /// A Skip that passes owners of a rank's CUDA objects stops the run: throw it outside of them.
  void run_part(const std::string& variant, bool is_first, const std::function<void()>& part);

  /// Throws Skip, with the reason, if all variants that were chosen are skipped.
  void require_some() const;

  /// Says in which regime the results were measured; an unknown one leaves no trace.
  void set_regime(Regime regime);

  /// The JSON text. Asks the GPUs for the hardware stamp.
  std::string json() const;

  /// Writes the JSON to the file of --json; without that option writes nothing. Call it last: a file says
  /// "status": "ok". Throws Skip if all variants are skipped; std::runtime_error if the file cannot be
  /// written; then no file is left behind and an old one stays.
  void save() const;

 private:
  std::string chapter_;
  Options options_;
  Regime regime_;
  std::vector<Fields> results_;
  std::vector<std::pair<std::string, std::string>> skipped_;  // variants, and why
};

/// Throws UsageError, one sentence that starts with `option`, if no file `path` could be written: the folder
/// is missing or closed, or something else has that name. Leaves nothing behind.
void require_writable(const std::string& option, const std::string& path);

/// Writes the whole text to `path`, or nothing: it is written beside it first and then renamed.
/// Throws std::runtime_error.
void write_file(const std::string& path, std::string_view text);

/// A table of text for the terminal. Columns of numbers are aligned on the right, others on the left.
class Table {
 public:
  /// A table without rows, with the columns of `header`.
  explicit Table(std::vector<std::string> header);

  /// Throws std::invalid_argument unless there is one cell for each column.
  void add_row(std::vector<std::string> cells);

  /// All lines, each ending in a line break.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
};

/// Writes the table's text().
std::ostream& operator<<(std::ostream& out, const Table& table);

/// The number with that many digits after the point: fixed(3.14159, 2) is "3.14".
std::string fixed(double value, int digits);

}  // namespace overlap
