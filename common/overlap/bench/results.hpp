// What a program has measured, row by row, in the form in which it is saved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "overlap/bench/gpu_clocks.hpp"

namespace overlap {

/// Collects results, the variants that could not run, and the clocks at which they were measured.
class Results {
 public:
  /// A value in a result.
  using Value = std::variant<std::int64_t, double, std::string>;
  /// The fields of one result: names and values, in this order.
  using Fields = std::vector<std::pair<std::string, Value>>;

  explicit Results(std::vector<std::string> variants) : variants_(std::move(variants)) {}

  /// Adds one result, its fields in this order. Throws std::invalid_argument if a number is not finite (JSON
  /// has no such number).
  void add_result(Fields fields);
  /// Adds a variant that was chosen and cannot run here: its name, "status": "skipped" and the reason. Its
  /// name once is enough.
  void add_skipped(const std::string& variant, const std::string& reason);
  /// Runs a part of the program, which measures the chosen variant of that name. If it throws Skip, the rest
  /// of the program goes on without it: says so, and adds it to those that are skipped. Called by all ranks,
  /// on which the part is skipped for the same reason; `is_first` on the one that prints and has the results.
  /// A Skip that passes owners of a rank's CUDA objects stops the run: throw it outside of them.
  void run_part(const std::string& variant, bool is_first, const std::function<void()>& part);
  /// Throws Skip, with the reason, if all variants that were chosen are skipped.
  void require_some() const;
  /// Says at which clocks the results were measured; an unknown one leaves no trace.
  void set_clocks(GpuClocks clocks);

 protected:
  const GpuClocks& clocks() const { return clocks_; }
  const std::vector<Fields>& all() const { return results_; }

 private:
  std::vector<std::string> variants_;
  GpuClocks clocks_;
  std::vector<Fields> results_;
  std::vector<std::pair<std::string, std::string>> skipped_;  // variants, and why
};

}  // namespace overlap
