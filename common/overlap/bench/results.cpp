#include "overlap/bench/results.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>

#include "overlap/gpu/error.hpp"

namespace overlap {

void Results::add_result(Fields fields) {
  for (const auto& [name, value] : fields) {
    const double* number = std::get_if<double>(&value);
    if (number != nullptr && !std::isfinite(*number)) {
      throw std::invalid_argument("the result '" + name + "' is not a finite number");
    }
  }
  results_.push_back(std::move(fields));
}

void Results::add_skipped(const std::string& variant, const std::string& reason) {
  for (const auto& known : skipped_) {
    if (known.first == variant) return;
  }
  skipped_.emplace_back(variant, reason);
  add_result({{"variant", variant}, {"status", std::string("skipped")}, {"reason", reason}});
}

void Results::run_part(const std::string& variant, bool is_first, const std::function<void()>& part) {
  try {
    part();
  } catch (const Skip& skip) {
    if (!is_first) return;
    std::cout << variant << " is left out: " << skip.what() << "\n";
    add_skipped(variant, skip.what());
  }
}

void Results::require_some() const {
  const bool all = std::all_of(variants_.begin(), variants_.end(), [&](const auto& chosen) {
    return std::any_of(skipped_.begin(), skipped_.end(),
                       [&](const auto& skipped) { return skipped.first == chosen; });
  });
  if (all && !skipped_.empty()) throw Skip(skipped_.back().second);
}

void Results::set_clocks(GpuClocks clocks) { clocks_ = std::move(clocks); }

}  // namespace overlap
