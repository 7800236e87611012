#include "engine/model/machine.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace vgpu {
namespace {

using nlohmann::json;

/// Takes the fields out of one JSON object; what is left at the end is unknown, hence probably misspelt.
class Section {
 public:
  Section(std::string path, json object) : path_(std::move(path)), object_(std::move(object)) {
    if (!object_.is_object()) fail("must be an object");
  }

  json take(const char* field) {
    const auto found = object_.find(field);
    if (found == object_.end()) fail(std::string("lacks '") + field + "'");
    json value = *found;
    object_.erase(found);
    return value;
  }
  double number(const char* field, double low, double high) {
    const json value = take(field);
    if (!value.is_number()) fail(std::string("'") + field + "' must be a number");
    const double number = value.get<double>();
    if (!(number >= low && number <= high)) {
      std::ostringstream sentence;
      sentence << "'" << field << "' must be between " << low << " and " << high;
      fail(sentence.str());
    }
    return number;
  }
  /// `otherwise` if the field is not there.
  double number_or(double otherwise, const char* field, double low, double high) {
    return has(field) ? number(field, low, high) : otherwise;
  }
  int integer(const char* field, int low, int high) {
    const double value = number(field, low, high);
    if (value != std::floor(value)) fail(std::string("'") + field + "' must be a whole number");
    return static_cast<int>(value);
  }
  std::string text(const char* field) {
    const json value = take(field);
    if (!value.is_string()) fail(std::string("'") + field + "' must be text");
    return value.get<std::string>();
  }
  bool has(const char* field) const { return object_.contains(field); }
  bool flag(const char* field) {
    const json value = take(field);
    if (!value.is_boolean()) fail(std::string("'") + field + "' must be true or false");
    return value.get<bool>();
  }
  /// The object in that field.
  Section section(const char* field) { return {path_ + ": '" + field + "'", take(field)}; }
  /// A field that somebody else reads, if it is there.
  void leave_to_others(const char* field) { object_.erase(field); }
  void done() {
    object_.erase("about");
    if (!object_.empty()) fail("does not know '" + object_.begin().key() + "'");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("machine description: " + path_ + " " + what);
  }

 private:
  std::string path_;
  json object_;
};

void read_gpu(Section gpu, Machine& machine) {
  constexpr double kKiB = 1024;
  machine.gpu_name = gpu.text("name");
  const json capability = gpu.take("compute_capability");
  if (!capability.is_array() || capability.size() != 2 || !capability[0].is_number_integer() ||
      !capability[1].is_number_integer()) {
    gpu.fail("'compute_capability' must be [major, minor]");
  }
  machine.compute_major = capability[0];
  machine.compute_minor = capability[1];
  machine.multiprocessors = gpu.integer("multiprocessors", 1, 1024);
  machine.clock_ghz = gpu.number("clock_ghz", 1e-3, 1e3);
  machine.lanes = gpu.integer("lanes_per_multiprocessor", 32, 4096);
  machine.max_threads = gpu.integer("max_threads_per_multiprocessor", 1024, 4096);
  machine.max_blocks = gpu.integer("max_blocks_per_multiprocessor", 1, 64);
  machine.shared_per_multiprocessor = gpu.number("shared_kib_per_multiprocessor", 16, 4096) * kKiB;
  machine.shared_per_block = gpu.number("shared_kib_per_block", 16, 4096) * kKiB;
  machine.shared_per_block_opt_in = gpu.number("shared_kib_per_block_opt_in", 16, 4096) * kKiB;
  machine.memory_bytes = static_cast<std::size_t>(gpu.number("memory_mib", 1, 1 << 20)) << 20;
  machine.memory_on_demand = gpu.has("memory_on_demand") && gpu.flag("memory_on_demand");
  machine.memory_rate = gpu.number("memory_gb_per_s", 1e-3, 1e6);
  machine.copy_engines = gpu.integer("copy_engines", 1, 64);
  machine.cycles_per_basic_block = gpu.number("cycles_per_basic_block", 1e-3, 1e6);
  machine.launch_ns = gpu.number("launch_us", 0, 1e6) * 1e3;
  machine.graph_launch_ns = gpu.number_or(machine.launch_ns * 1e-3, "graph_launch_us", 0, 1e6) * 1e3;
  machine.graph_node_ns = gpu.number_or(machine.launch_ns * 1e-3 / 2, "graph_node_us", 0, 1e6) * 1e3;
  machine.poll_ns = gpu.number("poll_us", 1e-3, 1e6) * 1e3;
  machine.bulk_latency_ns = gpu.number_or(0.7, "bulk_copy_latency_us", 0, 1e6) * 1e3;
  Section product = gpu.section("product");
  machine.product_tile_rows = product.integer("tile_rows", 1, 4096);
  machine.product_tile_columns = product.integer("tile_columns", 1, 4096);
  machine.product_rate_f16 = product.number("f16_tflops", 1e-6, 1e6) * 1e3;
  machine.product_rate_f32 = product.number("f32_tflops", 1e-6, 1e6) * 1e3;
  product.done();
  gpu.done();
}

}  // namespace

std::string machine_file(const std::string& name_or_file) {
  const auto shipped = std::filesystem::path(VGPU_MACHINES_DIR) / (name_or_file + ".json");
  return std::filesystem::is_regular_file(shipped) ? shipped.string() : name_or_file;
}

Machine load_machine(const std::string& name_or_file) {
  const std::filesystem::path file = machine_file(name_or_file);
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) {
    throw std::runtime_error("machine description: '" + name_or_file +
                             "' is neither a shipped machine nor a readable file");
  }
  const json document = json::parse(stream, nullptr, false);
  if (document.is_discarded())
    throw std::runtime_error("machine description: " + file.string() + " is not valid JSON");

  Machine machine{};
  Section root(file.string(), document);
  machine.name = root.text("name");
  machine.gpus = root.integer("gpus", 1, kMaxGpus);
  read_gpu(root.section("gpu"), machine);

  Section host = root.section("host");
  machine.host_call_ns = host.number("call_us", 1e-3, 1e6) * 1e3;
  machine.host_copy_latency_ns = host.number("copy_latency_us", 0, 1e6) * 1e3;
  machine.host_copy_rate = host.number("copy_gb_per_s", 1e-3, 1e6);
  machine.host_memory_rate = host.number("memory_gb_per_s", 1e-3, 1e6);
  host.done();

  Section peer = root.section("peer");
  machine.peer_access = peer.flag("access");
  machine.peer_atomics = peer.flag("native_atomics");
  machine.peer_copy_latency_ns = peer.number("copy_latency_us", 0, 1e6) * 1e3;
  machine.peer_copy_rate = peer.number("copy_gb_per_s", 1e-3, 1e6);
  machine.signal_ns = peer.number("signal_us", 0, 1e6) * 1e3;
  peer.done();

  if (root.has("nodes")) {
    Section nodes = root.section("nodes");
    machine.gpus_per_node = nodes.integer("gpus_per_node", 1, kMaxGpus);
    machine.rail_latency_ns = nodes.number("rail_latency_us", 0, 1e6) * 1e3;
    machine.rail_rate = nodes.number("rail_gb_per_s", 1e-3, 1e6);
    nodes.done();
  }

  Section nccl = root.section("nccl");
  machine.nccl_channels = nccl.integer("channels", 1, 64);
  machine.nccl_latency_ns = nccl.number("latency_us", 0, 1e6) * 1e3;
  machine.nccl_rate = nccl.number("gb_per_s", 1e-3, 1e6);
  nccl.done();
  root.leave_to_others("plan");  // what predicts times on machines that are not modelled
  root.done();
  return machine;
}

}  // namespace vgpu
