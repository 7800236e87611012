// What a program can ask of the virtual GPUs beyond CUDA.
#include "vgpu/control.hpp"

#include <stdexcept>

#include "engine/host/host_code.hpp"
#include "engine/host/settings.hpp"
#include "engine/runtime.hpp"

namespace vgpu {
namespace {

std::uint64_t resets_so_far = 0;

void require_not_started(const char* what) {
  if (runtime_if_started() != nullptr)
    throw std::logic_error(std::string(what) + " must be chosen before the first CUDA call");
}

}  // namespace

void use_schedule(std::uint64_t seed) {
  require_not_started("the schedule");
  settings().choose_seed(seed);
}

void use_machine(const std::string& name_or_file) {
  require_not_started("the machine");
  load_machine(name_or_file);  // complain now, in the caller's hands
  settings().choose_machine(name_or_file);
}

void use_gpus(int count) {
  require_not_started("the number of GPUs");
  if (count < 1 || count > kMaxGpus)
    throw std::invalid_argument(std::to_string(count) + " GPUs: a machine has 1 to " +
                                std::to_string(kMaxGpus));
  settings().choose_gpus(count);
}

void use_nodes(int nodes, int gpus_per_node) {
  require_not_started("the nodes");
  if (nodes < 1 || gpus_per_node < 1 || nodes > kMaxGpus || nodes * gpus_per_node > kMaxGpus)
    throw std::invalid_argument(std::to_string(nodes) + " nodes of " + std::to_string(gpus_per_node) +
                                " GPUs: a machine has 1 to " + std::to_string(kMaxGpus) + " GPUs");
  const Settings before = settings();
  settings().choose_nodes(nodes, gpus_per_node);
  try {
    settings().load();  // complain now, in the caller's hands
  } catch (...) {
    settings() = before;
    throw;
  }
}

void print_errors() { settings().print_errors(); }
void count_host_code() { settings().count_host_code(); }

std::string machine_name() { return runtime().machine().name; }

double product_tflops(bool sixteen_bit) {
  const Machine& machine = runtime().machine();
  return (sixteen_bit ? machine.product_rate_f16 : machine.product_rate_f32) / 1000;  // from GFLOP/s
}

ProductTile product_tile() {
  const Machine& machine = runtime().machine();
  return {machine.product_tile_rows, machine.product_tile_columns};
}

void host_work(std::uint64_t bytes) {
  require_host_code("vgpu::host_work()");
  const hb::RuntimeScope scope;
  Runtime& vgpu = runtime();
  if (bytes == 0 || vgpu.hosts().stopping()) return;
  HostThread& self = vgpu.host();
  const double end =
      vgpu.host_memory().book(self.now(), static_cast<double>(bytes) / vgpu.machine().host_memory_rate);
  self.wait_until(end);
  // Others come first until then.
  vgpu.waits().block_until({[] { return true; }, [end] { return end; }, "its work on host memory"});
}

void run_blocks(BlockRange blocks) {
  require_host_code("vgpu::run_blocks()");
  runtime().kernels().run_only(blocks);
}

double host_time_ms() { return runtime().host().now() * 1e-6; }

bool failure_reported() {
  Runtime* started = runtime_if_started();
  return started != nullptr && started->waits().deadlock_reported();
}

std::uint64_t schedule_hash() {
  Runtime* started = runtime_if_started();
  return started == nullptr ? 0 : started->schedule().hash();
}

std::string last_error_detail() {
  Runtime* started = runtime_if_started();
  return started == nullptr ? "" : started->errors().last_detail();
}

std::uint64_t host_waits() {
  Runtime* started = runtime_if_started();
  return started == nullptr ? 0 : started->host().waits();
}

Traffic traffic(int from, int to) {
  Runtime* started = runtime_if_started();
  return started == nullptr ? Traffic{} : started->traffic().between(from, to);
}

void reset() {
  if (Runtime* started = runtime_if_started()) {
    require_host_code("vgpu::reset()");
    if (started->hosts().several()) throw std::logic_error("vgpu::reset() was called in a host thread");
    destroy_runtime();
  }
  settings() = {};
  ++resets_so_far;
}

std::uint64_t resets() { return resets_so_far; }

}  // namespace vgpu
