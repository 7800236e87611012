#include "engine/runtime.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/fault_handler.hpp"
#include "vgpu/control.hpp"

namespace vgpu {
namespace {

// Queries in a row while nothing can happen, after which a polling host is called deadlocked.
constexpr std::uint64_t kIdleQueries = 100000;

struct Settings {
  std::optional<std::uint64_t> seed;
  std::string machine = "small";
  int gpus = 0;  // 0: as many as the machine has
  bool timeline = false;
  bool print_errors = false;
};
Settings& settings() {
  static Settings chosen;
  return chosen;
}
std::unique_ptr<Runtime>& instance() {
  static std::unique_ptr<Runtime> runtime;
  return runtime;
}
std::uint64_t resets_so_far = 0;
void require_not_started(const char* what) {
  if (instance()) throw std::logic_error(std::string(what) + " must be chosen before the first CUDA call");
}

Machine chosen_machine() {
  Machine machine = load_machine(settings().machine);
  if (settings().gpus != 0) machine.gpus = settings().gpus;
  return machine;
}

std::vector<std::unique_ptr<Device>> make_devices(const Machine& machine) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int id = 0; id < machine.gpus; ++id) devices.push_back(std::make_unique<Device>(id, machine));
  return devices;
}

}  // namespace

Runtime& runtime() {
  auto& existing = instance();
  if (!existing) {
    existing = std::make_unique<Runtime>(chosen_machine(), settings().seed);
    install_fault_handler();
  }
  return *existing;
}

Runtime* runtime_if_started() { return instance().get(); }

Runtime::Runtime(Machine description, std::optional<std::uint64_t> seed)
    : machine(std::move(description)), devices(make_devices(machine)), scheduler(devices, hosts, seed) {}

Stream& Runtime::stream(cudaStream_t handle) {
  Stream& stream = find_stream(handle);
  if (stream.is_default()) captures.check_default_stream(device(stream.device()));
  return stream;
}

Stream& Runtime::find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().default_stream();
  for (const auto& device : devices) {
    for (const auto& stream : device->streams) {
      if (reinterpret_cast<cudaStream_t>(stream.get()) == handle && !stream->destroyed) return *stream;
    }
  }
  throw ApiError(cudaErrorInvalidResourceHandle, "this stream does not exist (any more)");
}

Event& Runtime::event(cudaEvent_t handle) {
  const auto found = events.find(reinterpret_cast<Event*>(handle));
  if (found == events.end())
    throw ApiError(cudaErrorInvalidResourceHandle, "this event does not exist (any more)");
  return *found->second;
}

Token Runtime::enqueue(Stream& stream, std::unique_ptr<Operation> operation) {
  if (stream.captured.capture) {
    captures.add(stream, std::move(operation));
    return nullptr;
  }
  // Legacy default stream (CUDA Programming Guide, "Default Stream"): its operations wait for all blocking
  // streams of the device, and those wait for it.
  Device& owner = device(stream.device());
  const auto wait_for = [&](const Token& token) {
    if (token) operation->waits_for.push_back(token);
  };
  if (stream.is_default()) {
    for (const Token& token : pending(stream)) wait_for(token);
  } else if (stream.blocking()) {
    wait_for(owner.default_stream().last());
  }
  wait_for(owner.serialized);
  operation->id = next_operation_++;
  operation->enqueued = host().now;
  operation->labels = host().labels;
  operation->site = hb::call_site(operation->site.through_kernel);
  hb::release(hb::host_context(), operation.get());
  Token done = operation->done;
  if (stopping_) {
    done->complete = true;
    done->time = host().now;
    return done;
  }
  operation->pulls = queue_pull(*operation, stream.device(), done);
  stream.push(std::move(operation));
  return done;
}

PullQueue* Runtime::queue_pull(const Operation& operation, int device_id, const Token& done) {
  const int source = operation.pulls_from(device_id);
  if (source == kHost) return nullptr;
  PullQueue& pulls = device(source).pulls;
  if (scheduler.random()) {
    pulls.append(done);
  } else {
    pulls.insert(host().now, done);
  }
  return &pulls;
}

void Runtime::enqueue_node(Stream& stream, std::unique_ptr<Operation> node) {
  node->id = next_operation_++;
  stream.push(std::move(node));
}

void Runtime::wait(const std::vector<Token>& tokens) {
  if (stopping_) return;
  HostThread& self = host();
  const auto complete = [&] {
    return std::all_of(tokens.begin(), tokens.end(),
                       [](const Token& token) { return !token || token->complete; });
  };
  const auto time = [&] {
    double latest = self.now;
    for (const Token& token : tokens) latest = token ? std::max(latest, token->time) : latest;
    return latest;
  };
  scheduler.note_progress();  // the host may have written what a kernel polls for
  block_until({[&] { return given_up() || complete(); }, time, "work that was enqueued"});
  throw_if_given_up();
  self.now = time();
  for (const Token& token : tokens) {
    if (token) hb::acquire(hb::host_context(), token.get());
  }
}

void Runtime::block_host(const std::function<bool()>& reached, const std::string& what) {
  HostThread& self = host();
  scheduler.note_progress();
  block_until({[&] { return given_up() || reached(); }, [&] { return self.now; }, what});
  throw_if_given_up();
}

void Runtime::block_until(const HostThread::Wait& wait) {
  if (scheduler.run_until(wait)) return;
  host().wait = &wait;  // it waits still
  report_deadlock();
  host().wait = nullptr;
}

void Runtime::yield() {
  bool alive;
  if (hosts.several()) {
    const HostThread& self = host();
    const std::uint64_t before = scheduler.progress();
    block_until({[] { return true; }, [&] { return self.now; }, "its turn", true});
    alive = scheduler.progress() != before || scheduler.work_is_left();
  } else {
    alive = scheduler.run_to(host().now);
  }
  throw_if_given_up();
  idle_queries_ = alive ? 0 : idle_queries_ + 1;
  if (idle_queries_ > kIdleQueries) report_deadlock();
  throw_if_given_up();
}

std::vector<Token> Runtime::pending(Stream& stream) {
  if (!stream.is_default()) return {stream.last()};
  std::vector<Token> tokens;
  for (const auto& other : device(stream.device()).streams) {
    if (other->blocking()) tokens.push_back(other->last());
  }
  return tokens;
}

std::vector<Token> Runtime::pending(Device& device) {
  std::vector<Token> tokens;
  for (const auto& stream : device.streams) tokens.push_back(stream->last());
  return tokens;
}

bool Runtime::observe(const std::vector<Token>& tokens) {
  const auto known = [&] {
    return std::all_of(tokens.begin(), tokens.end(), [&](const Token& token) {
      return !token || (token->complete && (scheduler.random() || token->time <= host().now));
    });
  };
  if (hosts.several() || !known()) yield();
  if (!known()) return false;
  for (const Token& token : tokens) {
    if (token) hb::acquire(hb::host_context(), token.get());
  }
  return true;
}

void Runtime::fault(cudaError_t code, const std::string& sentence) {
  if (!fault_) fault_.emplace(code, sentence);
}

void Runtime::note_error(const char* call, const std::string& sentence, bool error) {
  last_error_detail = std::string(call) + ": " + sentence;
  if (error && settings().print_errors) std::fprintf(stderr, "virtual GPUs: %s\n", last_error_detail.c_str());
}

void Runtime::throw_if_faulted() const {
  if (fault_) throw *fault_;
}

void Runtime::throw_if_given_up() const {
  throw_if_faulted();
  if (stopping_) throw ApiError(cudaErrorUnknown, "the host threads are being stopped");
}

void Runtime::stop() {
  stopping_ = true;
  for (const auto& device : devices) device->discard_work(host().now, hosts.join_order());
}

void Runtime::report_deadlock() {
  std::fprintf(
      stderr,
      "virtual GPUs: deadlock: the host waits, and nothing can happen any more (schedule %s, hash %016llx)\n",
      scheduler.schedule_name().c_str(), static_cast<unsigned long long>(scheduler.hash()));
  bool idle = true;  // then what the host waits for is all that there is to say
  for (const auto& device : devices) {
    for (const auto& stream : device->streams) {
      const Operation* head = stream->head();
      if (head == nullptr) continue;
      idle = false;
      std::fprintf(stderr, "  %s: %s: %s; %zu more behind it\n", head->origin().c_str(),
                   head->describe().c_str(), head->progress().c_str(), stream->queue().size() - 1);
    }
  }
  for (const auto& thread : hosts.all()) {
    if ((!hosts.several() && !idle) || thread->wait == nullptr || thread->ended) continue;
    std::fprintf(stderr, "  %s (GPU %d): waits for %s\n", thread->name.c_str(), thread->device,
                 thread->wait->what.c_str());
  }
  deadlock_reported = true;
  fault(cudaErrorLaunchTimeout, "deadlock on the virtual GPUs (reported above)");
}

void use_schedule(std::uint64_t seed) {
  require_not_started("the schedule");
  settings().seed = seed;
}

void use_machine(const std::string& name_or_file) {
  require_not_started("the machine");
  load_machine(name_or_file);  // complain now, in the caller's hands
  settings().machine = name_or_file;
}

void use_gpus(int count) {
  require_not_started("the number of GPUs");
  if (count < 1 || count > kMostGpus)
    throw std::invalid_argument(std::to_string(count) + " GPUs: a machine has 1 to " +
                                std::to_string(kMostGpus));
  settings().gpus = count;
}

void print_errors() { settings().print_errors = true; }

void record_timeline() { settings().timeline = true; }
bool recording_timeline() { return settings().timeline; }

std::string machine_name() { return runtime().machine.name; }

double product_tflops(bool sixteen_bit) {
  const Machine& machine = runtime().machine;
  return (sixteen_bit ? machine.product_rate_f16 : machine.product_rate_f32) / 1000;  // from GFLOP/s
}

ProductTile product_tile() {
  const Machine& machine = runtime().machine;
  return {machine.product_tile_rows, machine.product_tile_columns};
}

void host_work(std::uint64_t bytes) {
  const hb::RuntimeScope scope;
  Runtime& vgpu = runtime();
  if (bytes == 0 || vgpu.stopping()) return;
  HostThread& self = vgpu.host();
  const double end =
      std::max(self.now, vgpu.host_memory_free) + static_cast<double>(bytes) / vgpu.machine.host_memory_rate;
  vgpu.host_memory_free = end;
  self.now = end;
  // Others come first until then.
  vgpu.block_until({[] { return true; }, [end] { return end; }, "its work on host memory"});
}

void run_blocks(BlockRange blocks) { runtime().blocks = blocks; }

double host_time_ms() { return runtime().host().now * 1e-6; }
bool failure_reported() { return instance() && instance()->deadlock_reported; }
std::uint64_t schedule_hash() { return instance() ? instance()->scheduler.hash() : 0; }
std::string last_error_detail() { return instance() ? instance()->last_error_detail : ""; }

Traffic traffic(int from, int to) {
  if (!instance()) return {};
  const auto found = instance()->traffic.find({from, to});
  return found == instance()->traffic.end() ? Traffic{} : found->second;
}

void reset() {
  ++resets_so_far;
  if (!instance()) {
    settings() = {};
    return;
  }
  const hb::RuntimeScope scope;
  instance().reset();
  settings() = {};
}

std::uint64_t resets() { return resets_so_far; }

}  // namespace vgpu
