#include "overlap/program/report.hpp"

#include <ctime>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "overlap/gpu/processes.hpp"
#include "overlap/program/utc_now.hpp"

namespace overlap {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const Options& options) {
  Json json = {{"gpus", options.gpus}};
  if (options.gpus_per_node > 0) json["gpus_per_node"] = options.gpus_per_node;
  if (options.processes != nullptr) json["processes"] = options.processes->count();
  if (const SparseOptions& sparse = options.sparse; sparse.shape.rows > 0) {
    json["rows"] = sparse.shape.rows;
    json["features"] = sparse.shape.features;
    json["entries"] = sparse.shape.entries;
    json["duplicates"] = sparse.duplicates;
    json["pattern"] = name_of(sparse.pattern);
    json["index"] = name_of(sparse.index);
  } else {
    json["m"] = options.shape.m;
    json["n"] = options.shape.n;
    json["k"] = options.shape.k;
  }
  json["type"] = name_of(options.type);
  json["iterations"] = options.iterations;
  json["warmup"] = options.warmup;
  json["seed"] = options.seed;
  json["check"] = options.check;
  json["variants"] = options.variants;
  if (options.backend.schedule) json["schedule"] = *options.backend.schedule;
  if (!options.backend.machine.empty()) json["machine"] = options.backend.machine;
  if (options.nccl) json["nccl"] = name_of(*options.nccl);
  if (!options.timeline.empty()) json["timeline"] = true;  // on real GPUs recording costs time
  return json;
}

Json sample_json(const GpuClocks::Sample& sample) {
  Json json = Json::object();
  const auto add = [&json](const char* name, const std::optional<MinMax>& range) {
    if (range) json[name] = {{"min", range->min}, {"max", range->max}};
  };
  add("sm_clock_mhz", sample.sm_clock_mhz);
  add("power_w", sample.power_w);
  add("temperature_c", sample.temperature_c);
  return json;
}

Json clocks_json(const GpuClocks& clocks) {
  Json json = {{"before", sample_json(clocks.before)}, {"after", sample_json(clocks.after)}};
  if (clocks.power_limit_w) json["power_limit_w"] = *clocks.power_limit_w;
  json["slowed_gpus"] = Json::object();
  for (const auto& [reason, gpus] : clocks.slowed) json["slowed_gpus"][reason] = gpus;
  return json;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::ostringstream text;
  text << std::put_time(&utc, "%Y-%m-%dT%H:%M:%SZ");
  return text.str();
}

Report::Report(const ChapterInfo& chapter, const Options& options)
    : Results(options.variants), chapter_(chapter.name), options_(options) {}

std::string Report::json() const {
  Json json;
  json["chapter"] = chapter_;
  json["backend"] = backend::name();
  json["modelled"] = backend::modelled_time();
  json["hardware"] = Json::object();
  for (const auto& [name, value] : backend::hardware()) json["hardware"][name] = value;
  json["options"] = options_json(options_);
  json["date"] = utc_now();
  json["commit"] = commit();
  json["status"] = "ok";
  if (!clocks().unknown()) json["gpu_clocks"] = clocks_json(clocks());
  json["results"] = Json::array();
  for (const Fields& fields : all()) {
    Json object = Json::object();
    for (const auto& [name, value] : fields) {
      std::visit([&object, &name = name](const auto& v) { object[name] = v; }, value);
    }
    json["results"].push_back(std::move(object));
  }
  return json.dump(2) + "\n";
}

void Report::save() const {
  require_some();
  if (!options_.json.empty() && options_.is_root()) write_file(options_.json, json());
}

}  // namespace overlap
