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

/// Overrides the machine's number of GPUs, 1 to 64. Only before the first CUDA call; throws std::logic_error
/// later, std::invalid_argument for another number.
void use_gpus(int count);

/// Overrides the number of nodes and of GPUs in each, 1 to 64 GPUs in all. Nodes are joined by the slower
/// links of the machine's "nodes". Throws as use_gpus(), std::runtime_error if the machine describes no
/// nodes.
void use_nodes(int nodes, int gpus_per_node);

/// From now on each call that fails prints last_error_detail() on standard error, for programs that do not
/// check errors. (cudaErrorNotReady is no error.)
void print_errors();

/// From now on host code without a CUDA call takes modelled time after a million basic blocks, 1 ns each, in
/// which the GPUs continue: it may poll a word that a kernel writes. For programs that do not call
/// host_work(). The order of the run then depends on the compiler.
void count_host_code();

/// Blocks of a grid, by number: x first, then y, then z.
struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t count = ~std::uint64_t{0};
};

/// Of each kernel enqueued from now on only these blocks of its grid run; for tests of grids that are too
/// large to run. run_blocks({}) and reset() let all blocks run again.
void run_blocks(BlockRange blocks);

/// Name of the modelled machine.
std::string machine_name();

/// The modelled host clock, in milliseconds since the start.
double host_time_ms();

/// Advances the calling host thread's modelled clock by the time of reading or writing `bytes` bytes of host
/// memory, whose rate all threads share.
void host_work(std::uint64_t bytes);

/// True once a deadlock has been reported.
bool failure_reported();

/// Calls body(0) ... body(count - 1), each on a host thread with its own current device (at first GPU 0),
/// last error and modelled clock. They are fibers of the calling thread: one runs until it blocks or queries
/// in a CUDA call or a HostBarrier, and the schedule decides which one continues. Returns when all have
/// ended; rethrows the exception of the lowest-numbered one. ThreadSanitizer and debuggers see one thread.
void run_host_threads(int count, const std::function<void(int)>& body);

/// The number of the calling host thread, -1 outside of run_host_threads().
int host_thread();

/// Stops all host threads: discards pending work, waiting calls return an error, HostBarrier::wait() returns
/// false, and until all threads have ended no call waits or enqueues.
void stop_host_threads();

/// A barrier of host threads. (A std::barrier would block the only thread of the operating system.)
class HostBarrier {
 public:
  explicit HostBarrier(int count) : count_(count) {}
  HostBarrier(const HostBarrier&) = delete;
  HostBarrier& operator=(const HostBarrier&) = delete;
  /// Blocks until `count` threads have called it; orders their earlier accesses before their later ones.
  /// False if some never will: after a deadlock (reported), a fault or stop_host_threads().
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

/// Calls of this host thread so far that wait for enqueued work (cudaStreamSynchronize, cudaMemcpy, cudaFree
/// ...), also if it is already complete, or query it (cudaStreamQuery, cudaEventQuery).
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

/// Rows and columns of a tile of the modelled machine's GEMMs, column-major as in cuBLAS.
struct ProductTile {
  int rows, columns;
};
ProductTile product_tile();

/// How the host computes cuBLAS's GEMMs: with OpenBLAS, if the build found it, or with a loop, several times
/// slower.
enum class ProductMethod { kOpenBlas, kLoop };
ProductMethod product_method();
/// Throws std::logic_error if the method is not available.
void use_product_method(ProductMethod method);

/// One sentence on the last call that returned an error, beyond CUDA's error code; "" if there is none.
std::string last_error_detail();

/// Destroys all virtual GPUs: the state before the first CUDA call. For tests; all handles and pointers
/// become invalid.
void reset();

/// How often reset() has been called: discard all remembered state of the GPUs when it grows.
std::uint64_t resets();

}  // namespace vgpu
