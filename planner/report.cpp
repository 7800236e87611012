#include "report.hpp"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "overlap/data/text.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap::planner {
namespace {

using nlohmann::ordered_json;

PredictedVariant predict(const Machine& machine, int gpus, const Variant& variant) {
  PredictedVariant result = {variant.chapter, variant.name, variant.cost, {}, variant.differs, 0, {},
                             Bound::kProduct};
  if (variant.most_ranks > 0 && gpus > variant.most_ranks) {
    result.why_not = "its kernel takes at most " + std::to_string(variant.most_ranks) + " ranks";
    return result;
  }
  if (variant.peers && gpus > machine.gpus_per_node) {
    result.why_not = machine.gpus_per_node == 1 ? "GPUs do not reach each other's memory"
                                                : "only " + std::to_string(machine.gpus_per_node) +
                                                      " GPUs reach each other's memory";
    return result;
  }
  result.us = variant.us(machine);
  for (const Bound bound : all_bounds()) {
    result.saved_us[bound] = std::max(0.0, result.us - variant.us(without(machine, bound)));
    if (result.saved_us[bound] > result.saved_us[result.bound]) result.bound = bound;
  }
  return result;
}

/// The width of a column, with the gap before it.
constexpr int kName = 22, kChapter = 27, kTime = 14, kNumber = 10;

void print(std::ostream& out, const PredictedOperation& operation) {
  out << "\n" << operation.name << ": " << operation.formula << "\n";
  if (operation.gemm_only_us)
    out << "  GEMM only, the product alone: predicted " << fixed(*operation.gemm_only_us, 1) << " us\n";
  constexpr int kBeforeSaved = 2 + kChapter + kName + kTime + 2 * kNumber;
  out << std::string(kBeforeSaved, ' ') << "   us less without:\n";
  out << "  " << std::left << std::setw(kChapter) << "chapter" << std::setw(kName) << "variant" << std::right
      << std::setw(kTime) << "predicted us" << std::setw(kNumber) << (operation.gemm_only_us ? "x GEMM" : "")
      << std::setw(kNumber) << "bound by";
  for (const Bound bound : all_bounds()) out << std::setw(kNumber) << name_of(bound);
  out << "\n";
  for (const PredictedVariant& variant : operation.variants) {
    out << "  " << std::left << std::setw(kChapter) << variant.chapter << std::setw(kName) << variant.name
        << std::right;
    if (!variant.why_not.empty()) {
      out << "  not here: " << variant.why_not << "\n";
      continue;
    }
    out << std::setw(kTime) << fixed(variant.us, 1) << std::setw(kNumber)
        << (operation.gemm_only_us ? fixed(variant.us / *operation.gemm_only_us, 3) : "")
        << std::setw(kNumber) << name_of(variant.bound);
    for (const Bound bound : all_bounds()) out << std::setw(kNumber) << fixed(variant.saved_us.at(bound), 1);
    out << (variant.differs.empty() ? "" : "  " + variant.differs) << "\n";
  }
  if (!operation.winner.empty()) out << "  predicted winner: " << operation.winner << "\n";
}

ordered_json json_of(const Cost& cost) {
  return {{"messages", cost.messages},       {"bytes_out", cost.bytes_out}, {"bytes_in", cost.bytes_in},
          {"host_waits", cost.host_waits},   {"products", cost.products},   {"launches", cost.launches},
          {"comparisons", cost.comparisons}, {"memory", cost.memory}};
}

ordered_json json_of(const PredictedVariant& variant) {
  ordered_json json = {
      {"chapter", variant.chapter}, {"variant", variant.name}, {"cost", json_of(variant.cost)}};
  if (!variant.why_not.empty()) {
    json["why_not"] = variant.why_not;
    return json;
  }
  if (!variant.differs.empty()) json["differs"] = variant.differs;
  json["predicted_us"] = variant.us;
  json["bound"] = name_of(variant.bound);
  for (const auto& [bound, us] : variant.saved_us) json["saved_us"][name_of(bound)] = us;
  return json;
}

}  // namespace

Prediction predict(const Machine& machine, int gpus, const std::string& type,
                   const std::vector<Operation>& operations) {
  Prediction prediction = {machine, gpus, type, {}};
  for (const Operation& operation : operations) {
    PredictedOperation result = {operation.name, operation.formula, {}, {}, {}};
    if (operation.gemm_only_us) result.gemm_only_us = operation.gemm_only_us(machine);
    for (const Variant& variant : operation.variants)
      result.variants.push_back(predict(machine, gpus, variant));
    const PredictedVariant* best = nullptr;
    for (const PredictedVariant& variant : result.variants) {
      if (!variant.why_not.empty() || !variant.differs.empty()) continue;
      if (best == nullptr || variant.us < best->us) best = &variant;
    }
    if (best != nullptr) result.winner = best->chapter + " " + best->name;
    prediction.operations.push_back(std::move(result));
  }
  return prediction;
}

void print(std::ostream& out, const Prediction& prediction) {
  const Machine& machine = prediction.machine;
  out << "Predicted, not run: " << prediction.gpus << " GPUs of " << machine.name << ", "
      << machine.gpus_per_node << " on a node, " << prediction.type << "\n";
  for (const PredictedOperation& operation : prediction.operations) print(out, operation);
}

void write_json(const std::string& file, const Prediction& prediction) {
  const Machine& machine = prediction.machine;
  ordered_json json = {{"predicted", true},
                       {"machine", machine.name},
                       {"gpus", prediction.gpus},
                       {"gpus_per_node", machine.gpus_per_node},
                       {"type", prediction.type},
                       {"constants", ordered_json::array()},
                       {"operations", ordered_json::array()}};
  for (const Source& source : machine.sources)
    json["constants"].push_back({{"name", source.name}, {"is", source.is}, {"from", source.from}});
  for (const PredictedOperation& operation : prediction.operations) {
    ordered_json one = {{"operation", operation.name}, {"formula", operation.formula}};
    if (operation.gemm_only_us) one["gemm_only_us"] = *operation.gemm_only_us;
    for (const PredictedVariant& variant : operation.variants) one["variants"].push_back(json_of(variant));
    one["winner"] = operation.winner;
    json["operations"].push_back(one);
  }
  if (file == "-") {
    std::cout << json.dump(2) << "\n";
    return;
  }
  std::ofstream stream(file);
  stream << json.dump(2) << "\n";
  if (!stream.flush()) throw UsageError("--json: " + file + " cannot be written");
}

}  // namespace overlap::planner
