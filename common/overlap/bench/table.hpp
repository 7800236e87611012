// A table for people.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "overlap/data/text.hpp"

namespace overlap {

/// A table of text for the terminal. Columns of numbers are aligned on the right, others on the left.
class Table {
 public:
  /// A table without rows, with the columns of `header`.
  explicit Table(std::vector<std::string> header);

  /// Throws std::invalid_argument unless there is one cell for each column.
  void add_row(std::vector<std::string> cells);

  bool empty() const { return rows_.size() == 1; }

  /// All lines, each ending in a line break.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
};

/// Writes the table's text().
std::ostream& operator<<(std::ostream& out, const Table& table);

}  // namespace overlap
