#include <algorithm>
#include <cctype>
#include <ostream>
#include <stdexcept>

#include "overlap/bench/table.hpp"

namespace overlap {
namespace {

// Characters on the terminal: in UTF-8 the bytes after a character's first one are 10xxxxxx.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// A number, perhaps with a sign before it or a unit after it; or "-" for none.
bool is_number(const std::string& text) {
  const std::size_t first = text.starts_with("-") || text.starts_with("+") ? 1 : 0;
  return text == "-" || (first < text.size() && std::isdigit(static_cast<unsigned char>(text[first])) != 0);
}

}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != rows_.front().size()) {
    throw std::invalid_argument("a table of " + std::to_string(rows_.front().size()) + " columns was given " +
                                std::to_string(cells.size()) + " cells");
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> on_the_right(columns, rows_.size() > 1);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], width_of(rows_[r][c]));
      if (r > 0 && !is_number(rows_[r][c])) on_the_right[c] = false;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += on_the_right[c] ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Table& table) { return out << table.text(); }

}  // namespace overlap
