// Control of the virtual GPUs beyond CUDA: the modelled machine, the schedule, and what happened.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace vgpu {

/// Runs operations in a random order drawn from `seed` instead of in the order of the modelled clock.
/// Only before the first CUDA call; throws std::logic_error later.
void use_schedule(std::uint64_t seed);

/// Models the machine of that name (a file in virtual_gpu/machines) or JSON file. The default is "small".
/// Only before the first CUDA call; throws std::runtime_error with one sentence.
void use_machine(const std::string& name_or_file);

/// Models so many GPUs of the machine's kind, 1 to 64, whatever its file says. Only before the first CUDA
/// call; throws std::logic_error later, std::invalid_argument for another number.
void use_gpus(int count);

/// Models so many nodes of so many of the machine's GPUs each, 1 to 64 in all, whatever its file says. GPUs
/// of different nodes reach each other by the slower links that the machine's "nodes" describe. Throws as
/// use_gpus() does, std::runtime_error if the machine describes none.
void use_nodes(int nodes, int gpus_per_node);

/// From now on each call that returns an error prints last_error_detail() on standard error. For programs
/// that do not check errors. (cudaErrorNotReady is an answer and no error.)
void print_errors();

/// From now on host code that runs long without a call of CUDA (a million basic blocks) takes modelled time,
/// 1 ns a basic block, and the GPUs continue meanwhile: it may wait for a word that a kernel writes. For
/// programs that do not call host_work(). The order of the run then depends on the compiler.
void count_host_code();

/// Blocks of a grid, by number: x first, then y, then z.
struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t count = ~std::uint64_t{0};
};

/// Of each kernel enqueued from now on only these blocks run, as far as its grid has them; the others do
/// nothing. For tests of grids that are too large to run as a whole. All blocks run after run_blocks({}) and
/// after reset().
void run_blocks(BlockRange blocks);

/// Name of the modelled machine.
std::string machine_name();

/// The modelled host clock, in milliseconds since the start.
double host_time_ms();

/// The calling host thread has read or written `bytes` bytes of host memory: its modelled clock advances by
/// the time that this takes. The memory serves one thread after the other, so all threads together get its
/// rate.
void host_work(std::uint64_t bytes);

/// True once a deadlock has been reported.
bool failure_reported();

/// Calls body(0) ... body(count - 1), each on a host thread of its own with its own current device (GPU 0 at
/// first), last error and modelled clock. They are fibers of the calling thread: one runs until it blocks or
/// queries in a CUDA call or a HostBarrier, and the schedule decides which one continues. Returns when all
/// have ended; rethrows the exception of the first of them, by number. While they wait, ThreadSanitizer and
/// debuggers see one thread.
void run_host_threads(int count, const std::function<void(int)>& body);

/// The number of the calling host thread, -1 outside of run_host_threads().
int host_thread();

/// Ends a run of host threads early: pending work of the GPUs is discarded, every waiting call returns an
/// error, later ones do not wait, HostBarrier::wait() returns false, and nothing more is enqueued until all
/// threads have ended.
void stop_host_threads();

/// A barrier of host threads. (A std::barrier would block the only thread of the operating system.)
class HostBarrier {
 public:
  explicit HostBarrier(int count) : count_(count) {}
  HostBarrier(const HostBarrier&) = delete;
  HostBarrier& operator=(const HostBarrier&) = delete;
  /// Blocks until `count` threads have called it, and orders their earlier accesses before their later ones.
  /// Returns false if some will never call it: after a deadlock (reported), a fault or stop_host_threads().
  bool wait();

 private:
  struct Round {
    double opened = 0;  // modelled time, in ns
  };
  int count_;
  int arrived_ = 0;
  double latest_ = 0;
  std::uint64_t generation_ = 0;
  Round rounds_[2];  // a thread may not have left one round when the next one fills
};

/// Hash of all scheduling decisions so far. The same program with the same seed gives the same hash.
std::uint64_t schedule_hash();

/// How often the calling host thread has waited for GPUs so far: its calls that return only when enqueued
/// work is complete (cudaStreamSynchronize, cudaMemcpy, cudaFree ...), whether or not it is complete already;
/// and those that ask whether it is (cudaStreamQuery, cudaEventQuery).
std::uint64_t host_waits();

/// Bytes and calls that copies have moved from one GPU to another, or from and to the host (kHost).
inline constexpr int kHost = -1;
struct Traffic {
  std::uint64_t bytes = 0;
  std::uint64_t copies = 0;
};
Traffic traffic(int from, int to);

/// The rate of the modelled machine's GEMMs in TFLOP/s, of 16-bit elements or of f32.
double product_tflops(bool sixteen_bit);

/// Rows and columns of C that one multiprocessor computes at a time in the modelled machine's GEMMs, as
/// cuBLAS counts them: of a row-major C they are columns and rows.
struct ProductTile {
  int rows, columns;
};
ProductTile product_tile();

/// How the host computes cuBLAS's GEMMs: with OpenBLAS, if the build found it, or with a loop that takes
/// several times as long.
enum class ProductMethod { kOpenBlas, kLoop };
ProductMethod product_method();
/// Throws std::logic_error if the method is not available.
void use_product_method(ProductMethod method);

/// One sentence on the last call that returned an error, beyond CUDA's error code; "" if there is none.
std::string last_error_detail();

/// Returns to the state before the first CUDA call: destroys all virtual GPUs and everything on them. For
/// tests; every handle and pointer becomes invalid.
void reset();

/// How often reset() has been called: discard all remembered state of the GPUs when it grows.
std::uint64_t resets();

}  // namespace vgpu
