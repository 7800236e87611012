// A prediction: what each variant takes, what holds it up, which one wins. As a table and as JSON.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalogue.hpp"

namespace overlap::planner {

/// Of one variant.
struct PredictedVariant {
  std::string chapter, name;
  Cost cost;
  std::string why_not;  ///< empty, or why it cannot be had on this machine; then there is no time
  std::string differs;  ///< empty, or how its result is another one; then it never wins
  double us = 0;
  std::map<Bound, double> saved_us;  ///< by how much less it took if that were free
  Bound bound = Bound::kProduct;     ///< what saves most
};

/// Of one operation.
struct PredictedOperation {
  std::string name, formula;
  std::optional<double> gemm_only_us;
  std::vector<PredictedVariant> variants;
  std::string winner;  ///< CHAPTER VARIANT
};

/// Of all that was asked for.
struct Prediction {
  Machine machine;
  int gpus = 1;
  std::string type;
  std::vector<PredictedOperation> operations;
};

/// Predicts every variant on the machine.
Prediction predict(const Machine& machine, int gpus, const std::string& type,
                   const std::vector<Operation>& operations);

/// Tables.
void print(std::ostream& out, const Prediction& prediction);
/// Writes JSON to a file, or to standard output if that is "-". Throws UsageError.
void write_json(const std::string& file, const Prediction& prediction);

}  // namespace overlap::planner
