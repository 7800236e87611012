// Results that are printed and saved: each row is given once.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "overlap/bench/results.hpp"
#include "overlap/bench/table.hpp"

namespace overlap {

/// How a number is printed.
using NumberText = std::function<std::string(double)>;

/// `scale` times the number, with so many digits after the point and `unit` behind it.
NumberText digits(int count, double scale = 1, const std::string& unit = "");
/// Milliseconds as microseconds, with one digit after the point.
NumberText microseconds();

/// The heading of a column of times, with " (modelled)" behind it where they are.
std::string modelled(const std::string& heading);

/// A column of a table, and the field of each row that it shows.
struct Column {
  std::string heading;          ///< above the column
  std::string field;            ///< of the row; "-" is printed where a row has none of that name
  NumberText text = digits(3);  ///< of its numbers, but for whole ones, which are printed as they are
};

/// A table whose rows are results.
class ResultTable {
 public:
  explicit ResultTable(std::vector<Column> columns);

  /// Adds a row, which is one result; none, if nothing is to be saved of it. What is in `shown` is printed
  /// only.
  void add(Results::Fields saved, const Results::Fields& shown = {});

  void save(Results& results) const;
  /// Prints `above`, which ends its last line itself, and the table; and saves it. Without rows: nothing.
  void finish(const std::string& above, Results& results) const;
  friend std::ostream& operator<<(std::ostream& out, const ResultTable& table);

 private:
  std::vector<Column> columns_;
  Table text_;
  std::vector<Results::Fields> saved_;
};

}  // namespace overlap
