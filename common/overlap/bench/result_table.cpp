#include "overlap/bench/result_table.hpp"

#include <array>
#include <cstdint>
#include <iostream>
#include <utility>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

std::vector<std::string> headings(const std::vector<Column>& columns) {
  std::vector<std::string> texts;
  for (const Column& column : columns) texts.push_back(column.heading);
  return texts;
}

std::string text_of(const Results::Value& value, const NumberText& number) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return number(*real);
  return std::get<std::string>(value);
}

}  // namespace

NumberText digits(int count, double scale, const std::string& unit) {
  return [=](double value) { return fixed(scale * value, count) + unit; };
}

NumberText microseconds() { return digits(1, 1e3); }

std::string modelled(const std::string& heading) {
  return heading + (backend::modelled_time() ? " (modelled)" : "");
}

ResultTable::ResultTable(std::vector<Column> columns)
    : columns_(std::move(columns)), text_(headings(columns_)) {}

void ResultTable::add(Results::Fields saved, const Results::Fields& shown) {
  std::vector<std::string> cells;
  for (const Column& column : columns_) {
    std::string cell = "-";
    for (const Results::Fields* fields : std::array<const Results::Fields*, 2>{&saved, &shown}) {
      for (const auto& [name, value] : *fields) {
        if (name == column.field) cell = text_of(value, column.text);
      }
    }
    cells.push_back(std::move(cell));
  }
  text_.add_row(std::move(cells));
  if (!saved.empty()) saved_.push_back(std::move(saved));
}

void ResultTable::save(Results& results) const {
  for (const Results::Fields& fields : saved_) results.add_result(fields);
}

void ResultTable::finish(const std::string& above, Results& results) const {
  if (text_.empty()) return;
  std::cout << above << *this;
  save(results);
}

std::ostream& operator<<(std::ostream& out, const ResultTable& table) { return out << table.text_; }

}  // namespace overlap
