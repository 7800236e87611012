#include "machine.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "engine/machine.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap::planner {
namespace {

using nlohmann::json;

/// Infinitely fast. Not infinity: a rate is multiplied, too.
constexpr double kAtOnce = 1e30;
constexpr double kMega = 1e6;  // TFLOP/s to operations per us
constexpr double kKilo = 1e3;  // GB/s to bytes per us; us to ns

/// The section "plan" of a machine file: each field is {"is": NUMBER, "from": TEXT}. What it lacks is derived
/// from the rest of the file.
class Plan {
 public:
  Plan(std::string file, json fields) : file_(std::move(file)), fields_(std::move(fields)) {
    if (!fields_.is_object()) fail("must be an object");
  }

  /// The constant, or `otherwise` if it is not there.
  double take(const char* name, double otherwise, double low = 0, double high = 1e9) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) return otherwise;
    const json field = *found;
    fields_.erase(found);
    const auto of = [&](const char* key, bool right) {
      if (!right) fail(std::string("'") + name + "' needs '" + key + "'");
    };
    of("is", field.is_object() && field.contains("is") && field["is"].is_number());
    of("from", field.contains("from") && field["from"].is_string());
    const double value = field["is"];
    if (!(value >= low && value <= high)) {
      fail(std::string("'") + name + "' must be between " + json(low).dump() + " and " + json(high).dump());
    }
    sources_.push_back({name, value, field["from"]});
    return value;
  }

  std::vector<Source> done() {
    if (!fields_.empty()) fail("does not know '" + fields_.begin().key() + "'");
    return sources_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("--machine: machine description: " + file_ + ": 'plan' " + what);
  }

  std::string file_;
  json fields_;
  std::vector<Source> sources_;
};

Machine machine_of(const vgpu::Machine& file, Plan plan) {
  constexpr double kLow = 1e-6;  // a rate of 0 is none
  Machine machine;
  machine.name = file.name;
  machine.gpus_per_node = !file.peer_access ? 1 : file.gpus_per_node > 0 ? file.gpus_per_node : file.gpus;
  machine.multiprocessors = file.multiprocessors;
  // The file's tile is that of a column-major C.
  machine.tile = {file.product_tile_columns, file.product_tile_rows};
  machine.product_rate = kMega * plan.take("f16_tflops", file.product_rate_f16 / kKilo, kLow);
  machine.smaller_tile = plan.take("smaller_tile_rate", 1, kLow, 1);
  machine.sustained = plan.take("sustained_rate", 1, kLow, 1);
  machine.sustained_us = plan.take("sustained_us", 0);
  machine.memory_rate = kKilo * plan.take("memory_gb_per_s", file.memory_rate, kLow);
  machine.call_us = plan.take("call_us", file.launch_ns / kKilo);
  machine.launch_us = plan.take("launch_us", file.launch_ns / kKilo);
  machine.event_us = plan.take("event_us", 0);
  machine.push_us = plan.take("push_us", file.peer_copy_latency_ns / kKilo);
  machine.pull_us = plan.take("pull_us", machine.push_us);
  machine.link_rate = kKilo * plan.take("link_gb_per_s", file.peer_copy_rate, kLow);
  machine.signal_us = plan.take("signal_us", file.signal_ns / kKilo);
  machine.nccl_blocks = file.nccl_channels;
  machine.collective_us = plan.take("nccl_us", file.nccl_latency_ns / kKilo);
  machine.registered_us = plan.take("nccl_registered_us", machine.collective_us);
  machine.copy_engine_us = plan.take("nccl_copy_engine_us", machine.collective_us);
  machine.message_us = plan.take("nccl_message_us", 0);
  machine.collective_rate = kKilo * plan.take("nccl_gb_per_s", file.nccl_rate, kLow);
  machine.send_us = plan.take("nccl_send_us", machine.collective_us);
  machine.send_rate = kKilo * plan.take("nccl_send_gb_per_s", file.nccl_rate, kLow);
  const bool has_rails = file.gpus_per_node > 0;
  machine.network_us = plan.take("network_us", has_rails ? file.rail_latency_ns / kKilo : 5);
  machine.network_rate = kKilo * plan.take("network_gb_per_s", has_rails ? file.rail_rate : 50, kLow);
  machine.host_launch_us = plan.take("host_launch_us", file.launch_ns / kKilo);
  machine.host_wait_us = plan.take("host_wait_us", file.host_copy_latency_ns / kKilo);
  machine.graph_node_us = plan.take("graph_node_us", file.graph_node_ns / kKilo);
  // Otherwise as many as there are lanes, in two cycles: a load and a comparison.
  machine.compare_rate =
      kKilo * plan.take("comparisons_per_ns", file.multiprocessors * file.lanes * file.clock_ghz / 2, kLow);
  machine.sources = plan.done();
  return machine;
}

}  // namespace

const char* name_of(Bound bound) {
  switch (bound) {
    case Bound::kProduct:
      return "product";
    case Bound::kWaves:
      return "waves";
    case Bound::kLink:
      return "link";
    case Bound::kLatency:
      return "latency";
    case Bound::kMemory:
      return "memory";
    case Bound::kHost:
      return "host";
  }
  throw std::logic_error("unknown bound");
}

const std::vector<Bound>& all_bounds() {
  static const std::vector<Bound> bounds = {Bound::kProduct, Bound::kWaves,  Bound::kLink,
                                            Bound::kLatency, Bound::kMemory, Bound::kHost};
  return bounds;
}

Machine without(Machine machine, Bound bound) {
  switch (bound) {
    case Bound::kProduct:  // and the comparisons, which are the work of a sparse call
      machine.product_rate = machine.compare_rate = kAtOnce;
      break;
    case Bound::kWaves:
      machine.whole_waves = false;
      break;
    case Bound::kLink:
      machine.link_rate = machine.collective_rate = machine.send_rate = machine.network_rate = kAtOnce;
      machine.nccl_blocks = 0;
      break;
    case Bound::kLatency:
      for (double* latency :
           {&machine.call_us, &machine.launch_us, &machine.event_us, &machine.push_us, &machine.pull_us,
            &machine.signal_us, &machine.collective_us, &machine.registered_us, &machine.copy_engine_us,
            &machine.message_us, &machine.send_us, &machine.network_us}) {
        *latency = 0;
      }
      break;
    case Bound::kMemory:
      machine.memory_rate = kAtOnce;
      break;
    case Bound::kHost:
      machine.host_launch_us = machine.host_wait_us = machine.graph_node_us = 0;
      break;
  }
  return machine;
}

Machine read_machine(const std::string& name_or_file, int gpus_per_node) {
  vgpu::Machine file;
  json plan = json::object();
  std::string path;
  try {
    file = vgpu::load_machine(name_or_file);
    path = vgpu::machine_file(name_or_file);
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--machine: ") + error.what());
  }
  const json document = json::parse(std::ifstream(path));  // load_machine() has read it
  if (document.contains("plan")) plan = document["plan"];
  Machine machine = machine_of(file, Plan(path, plan));
  if (gpus_per_node > 0) machine.gpus_per_node = gpus_per_node;
  return machine;
}

}  // namespace overlap::planner
