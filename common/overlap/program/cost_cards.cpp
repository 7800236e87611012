#include "overlap/program/cost_cards.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <variant>

#include "overlap/gpu/error.hpp"
#include "overlap/program/options.hpp"

namespace overlap {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Cost& cost) {
  return {{"messages", cost.messages},
          {"bytes_out", cost.bytes_out},
          {"bytes_in", cost.bytes_in},
          {"bytes_to_host", cost.bytes_to_host},
          {"bytes_from_host", cost.bytes_from_host},
          {"host_waits", cost.host_waits},
          {"products", cost.products},
          {"launches", cost.launches},
          {"comparisons", cost.comparisons},
          {"memory", cost.memory}};
}

Json json_of(const Step& step) {
  Json json = {{"rule", step.rule}};
  for (const auto& [name, value] : step.numbers) std::visit([&](const auto& is) { json[name] = is; }, value);
  return json;
}

Json json_of(const VariantCard& variant, int ranks) {
  Json json = {{"variant", variant.name}, {"role", name_of(variant.role)}};
  if (!variant.runs_here) json["runs_here"] = false;
  if (!variant.differs.empty()) json["differs"] = variant.differs;
  if (!variant.uncounted.empty()) json["uncounted"] = variant.uncounted;
  if (variant.max_ranks > 0) json["max_ranks"] = variant.max_ranks;
  if (variant.max_ranks > 0 && ranks > variant.max_ranks) return json;
  if (const std::optional<Cost> cost = variant.cost()) json["cost"] = json_of(*cost);
  for (const Step& step : variant.steps()) json["steps"].push_back(json_of(step));
  return json;
}

}  // namespace

std::vector<std::string> CostCards::names() const {
  std::vector<std::string> all;
  for (const VariantCard& variant : variants) {
    if (variant.runs_here) all.push_back(variant.name);
  }
  return all;
}

bool CostCards::all_by_program(const std::vector<std::string>& chosen) const {
  return std::none_of(variants.begin(), variants.end(), [&](const VariantCard& variant) {
    return !variant.by_program && std::find(chosen.begin(), chosen.end(), variant.name) != chosen.end();
  });
}

Plan<DenseCall> dense_plan(std::string rule, Results::Fields numbers) {
  const Step step = {std::move(rule), std::move(numbers)};
  return {.steps = [step](const DenseCall&) { return std::vector{step}; }};
}

Plan<SparseSum> sparse_plan(std::string rule, Results::Fields numbers) {
  const Step step = {std::move(rule), std::move(numbers)};
  return {.steps = [step](const SparseSum&) { return std::vector{step}; }};
}

SparseSum sum_of(const Options& options) {
  const SparseShape shape = options.sparse.shape;
  return {shape,
          {.ranks = options.gpus,
           .rank = 0,  // it merges the lists, and so waits once more than the others
           .features = shape.features,
           .local = shape.entries,
           .most = shape.entries,
           .global = options.sparse.global}};
}

std::int64_t expected_global_rows(SparseShape shape, int ranks) {
  const auto all = static_cast<double>(shape.rows);
  // The part of the rows that no rank has, by logarithms, because it may be close to 1.
  return std::llround(-all * std::expm1(ranks * std::log1p(-static_cast<double>(shape.entries) / all)));
}

void print_costs(std::ostream& out, const ChapterInfo& chapter, const Options& options) {
  if (!chapter.table)
    throw UsageError("--cost: this program has no cost cards; the program of its chapter has them");
  const CostCards cards = chapter.table(options);
  Json json = {{"chapter", chapter.name}, {"type", name_of(options.type)}, {"gpus", options.gpus}};
  if (options.gpus_per_node > 0) json["gpus_per_node"] = options.gpus_per_node;
  if (chapter.sparse()) {
    const SparseShape shape = options.sparse.shape;
    json.update({{"rows", shape.rows},
                 {"features", shape.features},
                 {"entries", shape.entries},
                 {"global", options.sparse.global},
                 {"index", name_of(options.sparse.index)}});
  } else {
    json.update({{"m", options.shape.m}, {"n", options.shape.n}, {"k", options.shape.k}});
  }
  json["products"] = Json::array();
  for (const MatmulShape& product : cards.products)
    json["products"].push_back({{"m", product.m}, {"n", product.n}, {"k", product.k}});
  for (const VariantCard& variant : cards.variants)
    json["variants"].push_back(json_of(variant, options.gpus));
  out << json.dump(2) << "\n";
}

}  // namespace overlap
