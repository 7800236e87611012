// One block of a kernel: its CUDA threads, barriers, warps and shared memory.
//
// A block starts on one fiber, which runs CUDA thread 0, 1, 2, ... one after the other on the same stack.
// Only when a thread has to wait, a second fiber takes over with the next thread. Kernels without barriers
// need no switch at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/async_copy.hpp"
#include "engine/fiber.hpp"
#include "engine/operation.hpp"
#include "engine/scheduler.hpp"
#include "engine/stream.hpp"
#include "engine/thread_list.hpp"
#include "vgpu/launch.h"
#include "vgpu/types.h"

namespace vgpu {

/// What all blocks of one launch share.
struct Grid {
  dim3 grid, block;
  std::size_t dynamic_shared_bytes;
  std::size_t shared_limit;  // static and dynamic together
  const KernelBody* body;
  std::string name;
  double poll_ns;  // modelled time of one look in a spin-wait
};

class Block {
 public:
  enum class State { kReady, kPolling, kFinished, kStuck, kFaulted };

  /// `launch` is the operation that the block belongs to. Of a block that may be impatient each unsuccessful
  /// look may be taken for a wait (SpinDetection): so other blocks come in between its looks. That order is
  /// as good as any, but all its threads keep stacks.
  Block(const Grid& grid, std::uint64_t linear_index, Scheduler& scheduler, const Operation& launch,
        bool may_be_impatient);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Runs the block until it is finished, only has threads that poll, or cannot go on.
  State run();

  std::uint64_t linear_index() const { return linear_index_; }
  int thread_count() const { return static_cast<int>(threads_.size()); }
  /// Basic blocks of code that its threads have run so far: the model's measure of work.
  std::uint64_t work() const { return work_; }
  /// "block (3,0,0): 12 threads wait in __syncthreads, 4 have ended".
  std::string describe() const;
  /// Modelled time that must pass before it makes sense to look again, ns. Only for kPolling.
  double poll_time() const { return poll_time_; }
  const std::string& fault_sentence() const { return fault_sentence_; }
  cudaError_t fault_code() const { return fault_code_; }

  // Called by the running CUDA thread.
  void barrier();
  int barrier_reduce(int predicate, int (*combine)(int, int));
  const std::uint64_t* exchange(unsigned int mask, std::uint64_t value, unsigned int* present);
  void copy_async(const AsyncCopies::Request& request);
  void commit_copies();
  void wait_for_copies(unsigned int prior);
  /// Lets everybody else run before it returns; costs `nanoseconds` of modelled time.
  void poll(double nanoseconds);
  /// The thread has looked at the word at `address` and seen `bits`. If it saw the same last time, the other
  /// threads of the block go first. If it has seen nothing else for many looks, it waits: a poll.
  void look(const void* address, std::uint64_t bits);
  void* shared_storage(const void* declaration, std::size_t bytes, std::size_t alignment);
  void* dynamic_shared() { return dynamic_shared_.get(); }
  /// Abandons the block; does not return.
  [[noreturn]] void fault(const std::string& sentence, cudaError_t code = cudaErrorLaunchFailure);
  Thread& current() { return *current_; }
  const Grid& grid() const { return grid_; }

  /// Where the scheduler is suspended while a block runs.
  static Fiber scheduler_fiber;

 private:
  struct Exchange {
    unsigned int mask;
    unsigned int arrived = 0;
    int parity =
        0;  // two sets of values: a lane may already be in the next exchange while another still reads
    std::uint64_t values[2][32];
    unsigned int present[2];
    char order[2];  // addresses to synchronise on, by parity
    ThreadList waiting;
  };
  struct Warp {
    unsigned int alive = 0;
    std::vector<std::unique_ptr<Exchange>> exchanges;
  };
  struct FreeAligned {
    void operator()(void* memory) const { std::free(memory); }
  };
  using SharedMemory = std::unique_ptr<void, FreeAligned>;

  /// The runtime works in the stead of a CUDA thread until the end of the scope.
  class RuntimeTurn;

  std::size_t number_of(const Thread& thread) const {
    return static_cast<std::size_t>(&thread - threads_.data());
  }
  hb::Context context_of(const Thread& thread) const {
    return launch_.stream->contexts().of(linear_index_, number_of(thread));
  }
  FiberPool& fibers_of(const Thread& thread) const {
    return launch_.stream->contexts().fibers(linear_index_, number_of(thread));
  }
  Thread& next_to_start() { return threads_[start_order_.empty() ? started_ : start_order_[started_]]; }
  static void fiber_entry();
  void run_threads(Fiber& fiber);
  void suspend();
  Fiber& fresh_fiber();
  Fiber& next();
  void end_thread();
  void open_barrier();
  void complete(Exchange& exchange);
  /// suspend(), for what runs too rarely to be worth a copy of it.
  void let_others_run();
  void wait_for_own_block();
  void become(Thread& thread);
  SharedMemory make_shared_memory(std::size_t bytes, std::size_t alignment);

  const Grid& grid_;
  std::uint64_t linear_index_;
  uint3 index_;
  Scheduler& scheduler_;
  const Operation& launch_;

  std::vector<Thread> threads_;
  std::vector<std::uint32_t> start_order_;  // with a seed
  std::size_t started_ = 0;
  std::size_t alive_;
  Thread* current_ = nullptr;
  ThreadList runnable_, looking_, polling_, at_barrier_;
  SpinDetection spins_;
  std::vector<Warp> warps_;
  int barrier_value_ = 0, barrier_result_ = 0;
  bool barrier_has_value_ = false;
  // Addresses that the barrier's threads synchronise on, in turns: a thread that has not left one barrier yet
  // must not be ordered after what others do between it and the next one.
  char barrier_order_[2];
  int barrier_parity_ = 0;

  AsyncCopies copies_;
  SharedMemory dynamic_shared_;
  std::vector<std::pair<const void*, SharedMemory>> static_shared_;
  std::size_t shared_bytes_;

  State state_ = State::kReady;
  std::uint64_t work_ = 0;
  double poll_time_ = 0;
  std::string fault_sentence_;
  cudaError_t fault_code_ = cudaSuccess;
};

class Block::RuntimeTurn {
 public:
  RuntimeTurn(const Block& block, const Thread& thread) : block_(block), thread_(thread) {
    hb::enter(hb::runtime_context());
  }
  ~RuntimeTurn() { hb::enter(block_.context_of(thread_)); }
  RuntimeTurn(const RuntimeTurn&) = delete;
  RuntimeTurn& operator=(const RuntimeTurn&) = delete;

 private:
  const Block& block_;
  const Thread& thread_;
};

/// The block whose thread is running; nullptr in host code.
Block* current_block();

}  // namespace vgpu
