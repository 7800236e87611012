// OpenMP's parallel regions, as g++ compiles them with -fopenmp: their threads are host threads of the
// virtual GPUs, fibers that take turns where they wait. A program links these in the place of libgomp. Loops
// are divided by the compiler; what would need more of the library is refused by name.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/host/host_code.hpp"
#include "engine/runtime.hpp"
#include "vgpu/control.hpp"
#include "vgpu/unsupported_libraries.h"

namespace vgpu {
namespace {

int threads_wanted = 0;  // omp_set_num_threads; 0: OMP_NUM_THREADS, or kThreads
constexpr int kThreads = 4;

/// The parallel region that runs.
struct Region {
  explicit Region(int threads)
      : count(threads), barrier(threads), singles(static_cast<std::size_t>(threads), 0) {}
  int count;
  HostBarrier barrier;
  int single = 0;            // how many have been taken
  std::vector<int> singles;  // how many each thread has met
  void* copied = nullptr;    // what a single's thread hands out
};
Region* region = nullptr;

/// A lock of host threads, by address; for critical regions, too.
class Lock {
 public:
  void take() {
    hb::start();
    const hb::RuntimeScope scope;
    if (taken_ && runtime().hosts().several())
      runtime().waits().block_until({[this] { return !taken_; }, [] { return runtime().host().now(); },
                                     "a lock or a critical region of OpenMP"});
    taken_ = true;
    hb::acquire(hb::host_context(), this);
  }
  void give() {
    const hb::RuntimeScope scope;
    hb::release(hb::host_context(), this);
    taken_ = false;
  }
  bool taken() const { return taken_; }

 private:
  bool taken_ = false;
};
Lock& lock_of(const void* address) {
  static std::map<const void*, Lock> locks;
  return locks[address];
}

int own_number() { return region == nullptr ? 0 : std::max(0, host_thread()); }

int default_threads() {
  if (threads_wanted > 0) return threads_wanted;
  const char* text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? kThreads : std::clamp(std::atoi(text), 1, kMaxGpus);
}

[[noreturn]] void refuse(const char* what, const char* instead) {
  std::fflush(stdout);
  std::fprintf(stderr, "virtual GPUs: OpenMP's %s is not supported on virtual GPUs: %s\n", what, instead);
  std::_Exit(2);
}

}  // namespace
}  // namespace vgpu

using vgpu::region;

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned int threads, unsigned int) {
  const int count = region != nullptr ? 1 : threads > 0 ? static_cast<int>(threads) : vgpu::default_threads();
  if (region != nullptr) return body(data);  // nested: one thread, as by default
  vgpu::hb::start();
  vgpu::Region own(count);
  region = &own;
  const int device = [] {
    const vgpu::hb::RuntimeScope scope;
    return vgpu::runtime().host().device();
  }();
  vgpu::run_host_threads(count, [&](int number) {
    if (number == 0) {  // it is the program's own thread, which keeps its GPU
      const vgpu::hb::RuntimeScope scope;
      vgpu::runtime().host().use_device(device);
    }
    body(data);
  });
  region = nullptr;
}

void GOMP_barrier() {
  if (region != nullptr) region->barrier.wait();
}
void GOMP_critical_start() { vgpu::lock_of(nullptr).take(); }
void GOMP_critical_end() { vgpu::lock_of(nullptr).give(); }
void GOMP_critical_name_start(void** name) { vgpu::lock_of(name).take(); }
void GOMP_critical_name_end(void** name) { vgpu::lock_of(name).give(); }
void GOMP_atomic_start() { GOMP_critical_start(); }
void GOMP_atomic_end() { GOMP_critical_end(); }

bool GOMP_single_start() {
  if (region == nullptr) return true;
  int& met = region->singles[static_cast<std::size_t>(vgpu::own_number())];
  if (met++ < region->single) return false;
  ++region->single;
  return true;
}
void* GOMP_single_copy_start() {
  if (GOMP_single_start()) return nullptr;
  GOMP_barrier();
  void* copied = region->copied;
  GOMP_barrier();
  return copied;
}
void GOMP_single_copy_end(void* data) {
  if (region == nullptr) return;
  region->copied = data;
  GOMP_barrier();
  GOMP_barrier();
}

int omp_get_thread_num() { return vgpu::own_number(); }
int omp_get_num_threads() { return region == nullptr ? 1 : region->count; }
int omp_get_max_threads() { return vgpu::default_threads(); }
int omp_get_num_procs() { return vgpu::kThreads; }
void omp_set_num_threads(int count) { vgpu::threads_wanted = std::clamp(count, 1, vgpu::kMaxGpus); }
int omp_in_parallel() { return region != nullptr && region->count > 1; }
void omp_set_dynamic(int) {}
int omp_get_dynamic() { return 0; }
void omp_set_nested(int) {}
int omp_get_nested() { return 0; }
double omp_get_wtime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void omp_init_lock(void*) {}
void omp_destroy_lock(void*) {}
void omp_set_lock(void* lock) { vgpu::lock_of(lock).take(); }
void omp_unset_lock(void* lock) { vgpu::lock_of(lock).give(); }
int omp_test_lock(void* lock) {
  if (vgpu::lock_of(lock).taken()) return 0;
  vgpu::lock_of(lock).take();
  return 1;
}

#define VGPU_NO_OPENMP(what, instead, name) \
  void GOMP_##name() { vgpu::refuse(what, instead); }
#define VGPU_NO_OPENMPS(what, instead, ...) VGPU_EACH(VGPU_NO_OPENMP, what, instead, __VA_ARGS__)
VGPU_NO_OPENMPS("dynamic schedule", "use schedule(static)", loop_dynamic_start, loop_dynamic_next,
                loop_guided_start, loop_guided_next, loop_runtime_start, loop_runtime_next,
                loop_nonmonotonic_dynamic_start, loop_nonmonotonic_dynamic_next,
                loop_nonmonotonic_guided_start, loop_nonmonotonic_guided_next,
                loop_maybe_nonmonotonic_runtime_start, loop_maybe_nonmonotonic_runtime_next, loop_end,
                loop_end_nowait, parallel_loop_dynamic, parallel_loop_guided, parallel_loop_runtime,
                parallel_loop_nonmonotonic_dynamic, parallel_loop_nonmonotonic_guided,
                parallel_loop_maybe_nonmonotonic_runtime)
VGPU_NO_OPENMPS("ordered loop", "let one thread print", loop_ordered_static_start, ordered_start, ordered_end)
VGPU_NO_OPENMPS("task", "use a parallel region, one thread for each GPU", task, taskwait, taskloop)
VGPU_NO_OPENMPS("sections", "ask omp_get_thread_num()", sections_start, sections_next, sections_end,
                parallel_sections)
VGPU_NO_OPENMPS("target", "write a kernel", target_ext)

}  // extern "C"
