#include "overlap/report.hpp"

#include <cmath>
#include <ctime>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "utc_now.hpp"

namespace overlap {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const Options& options) {
  Json json = {{"gpus", options.gpus}};
  if (options.sparse.rows > 0) {
    json["rows"] = options.sparse.rows;
    json["features"] = options.sparse.features;
    json["entries"] = options.sparse.entries;
    json["duplicates"] = options.duplicates;
    json["pattern"] = name_of(options.pattern);
    json["index"] = name_of(options.index);
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
  if (!options.timeline.empty()) json["timeline"] = true;  // on real GPUs recording takes time
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
    : chapter_(chapter.name), options_(options) {}

void Report::add_result(Fields fields) {
  for (const auto& [name, value] : fields) {
    const double* number = std::get_if<double>(&value);
    if (number != nullptr && !std::isfinite(*number)) {
      throw std::invalid_argument("the result '" + name + "' is not a finite number");
    }
  }
  results_.push_back(std::move(fields));
}

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
  json["results"] = Json::array();
  for (const Fields& fields : results_) {
    Json object = Json::object();
    for (const auto& [name, value] : fields) {
      std::visit([&object, &name = name](const auto& v) { object[name] = v; }, value);
    }
    json["results"].push_back(std::move(object));
  }
  return json.dump(2) + "\n";
}

void Report::save() const {
  if (!options_.json.empty()) write_file(options_.json, json());
}

}  // namespace overlap
