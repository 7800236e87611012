// One block of a kernel: its CUDA threads, barriers, warps and shared memory.
//
// A block starts on one fiber, which runs CUDA thread 0, 1, 2, ... one after the other on the same stack.
// Only when a thread has to wait, a second fiber takes over with the next thread. Kernels without barriers
// need no switch at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/hopper/proxy_contexts.hpp"
#include "engine/kernel/async_copy.hpp"
#include "engine/kernel/async_work.hpp"
#include "engine/kernel/fiber.hpp"
#include "engine/kernel/repetition.hpp"
#include "engine/kernel/shared_memory.hpp"
#include "engine/kernel/thread_list.hpp"
#include "engine/kernel_records.hpp"
#include "engine/schedule.hpp"
#include "engine/streams/operation.hpp"
#include "engine/streams/stream.hpp"
#include "vgpu/launch.h"
#include "vgpu/types.h"

namespace vgpu {

class Block;
class MachineState;

/// Where all blocks of a cooperative launch meet.
struct GridBarrier {
  std::uint64_t arrived = 0, generation = 0;
  OrderPoint order[2];  // as Block::barrier_order_
};

/// What all blocks of one launch share.
struct Grid {
  dim3 grid, block;
  std::size_t dynamic_shared_bytes;
  std::size_t shared_limit;  // static and dynamic together
  const KernelBody* body;
  std::string name;
  double poll_ns;                                  // modelled time of one look in a spin-wait
  std::uint64_t cluster = 1;                       // blocks that are resident together: consecutive ones
  std::uint64_t shape = 0;                         // KernelRecords::shape()
  std::shared_ptr<GridBarrier> meeting = nullptr;  // of a cooperative launch
  bool is_first = false;                           // launch of the kernel on this GPU
  // Modelled: what a block needs for one basic block; its share of the memory's rate, bytes per ns, and what
  // a bulk copy takes beside that; its share of the tensor cores' rate, operations per ns.
  double ns_per_basic_block = 0, bulk_rate = 1, bulk_latency_ns = 0, tensor_rate = 1;
  // Bytes that a block declares, as far as those that ended have shown it.
  mutable std::optional<std::size_t> declared_shared = std::nullopt;
};

/// The blocks of a cluster: resident together, they meet at a barrier and reach each other's shared memory.
class Cluster {
 public:
  /// Blocks join before any of them runs. A block's rank is how many joined before it.
  void join(Block& block);
  std::size_t size() const { return members_.size(); }
  std::size_t rank_of(const Block& block) const;
  Block& block(std::size_t rank) const { return *members_[rank].block; }
  bool has_ended(std::size_t rank) const { return members_[rank].ended != nullptr; }
  /// True if another block runs, which may wake this one.
  bool others_live(const Block& block) const;
  /// Owns a block that has ended: the others may still address its shared memory.
  void keep(std::unique_ptr<Block> block);
  /// The rank of the block whose shared memory holds these bytes; size() if none does.
  std::size_t owner_of(const void* address, std::size_t bytes) const;

  // barrier.cluster, called for the running thread of `block`.
  void arrive(Block& block, bool release, const void* caller);
  void wait(Block& block, bool acquire, const void* caller);
  /// The thread ends: the barrier no longer waits for it.
  void leave(const Thread& thread);

 private:
  struct Member {
    Block* block;
    std::unique_ptr<Block> ended;
  };
  void open_if_complete();

  std::vector<Member> members_;
  std::size_t alive_ = 0, arrived_ = 0;  // threads
  std::uint64_t phase_ = 0;
  OrderPoint order_[2];  // by the parity of the phase
  double latest_ = 0;    // modelled time of the last arrival, ns
  double opened_[2] = {0, 0};
};

class Block {
 public:
  /// kAwaitsOthers: only another block of its cluster, or the end of the primary, can let it go on.
  enum class State { kReady, kPolling, kFinished, kAwaitsOthers, kStuck, kFaulted };

  /// `launch` is the operation that the block belongs to. Of a block that may be impatient each unsuccessful
  /// look may be taken for a wait (SpinDetection), and its threads give_way(): so other blocks come in
  /// between its looks and writes. That order is as good as any, but all its threads keep stacks.
  Block(const Grid& grid, std::uint64_t linear_index, MachineState& machine_state, const Operation& launch,
        bool may_be_impatient);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Instead of run(), whenever the block would only look at words that have not changed and poll again: lets
  /// poll_time() pass and returns true. Most steps of kernels that wait for other GPUs are such ones.
  bool waits_in_vain();
  /// Runs the block from modelled time `now` on, ns, until it is finished, only has threads that poll, or
  /// cannot go on.
  State run(double now);
  /// Before it runs: the block is one of those of the cluster. Otherwise it has one of its own.
  void join(Cluster& cluster);
  /// False if it awaits others, and nothing has happened there.
  bool can_run() const { return state_ != State::kAwaitsOthers || !runnable_.empty(); }

  std::uint64_t linear_index() const { return linear_index_; }
  int thread_count() const { return static_cast<int>(threads_.size()); }
  /// Threads that have not ended.
  std::size_t alive_count() const { return alive_; }
  /// Basic blocks of code that its threads have run so far: the model's measure of work.
  std::uint64_t work() const { return work_; }
  /// "block (3,0,0): 12 threads wait in __syncthreads, 4 have ended".
  std::string describe() const;
  /// Modelled time that must pass before it makes sense to look again, ns. Only for kPolling.
  double poll_time() const { return poll_time_; }
  /// Modelled time that the last run() spent waiting for its own bulk copies, ns.
  double stalled() const { return stalled_; }
  /// True if the block has only polled since the last progress, and its threads have come back to where they
  /// were: without news they will do so for ever. Known only once the schedule is in doubt.
  bool idle() const { return idle_since_ == schedule_.progress(); }
  /// Modelled time of its first cudaTriggerProgrammaticLaunchCompletion(), ns.
  const std::optional<double>& triggered_at() const { return triggered_at_; }
  /// The kernel before it, beside which it runs, has ended.
  void primary_ended() {
    if (!at_primary_.empty()) wake(at_primary_);
  }
  const std::string& fault_sentence() const { return fault_sentence_; }
  cudaError_t fault_code() const { return fault_code_; }

  // Called by the running CUDA thread.
  /// `caller`: a return address into the kernel.
  void barrier(const void* caller = nullptr);
  /// cudaTriggerProgrammaticLaunchCompletion() and cudaGridDependencySynchronize().
  void trigger_dependents();
  void await_primary();
  int barrier_reduce(int predicate, int (*combine)(int, int));
  /// The lanes of `mask` give and get values. What they did before comes before what they do afterwards, if
  /// the exchange `orders` them.
  const std::uint64_t* exchange(unsigned int mask, std::uint64_t value, unsigned int* present,
                                bool orders = true, const void* caller = nullptr);
  /// A shuffle of the running thread reads that lane of its warp, and the lane takes no part in it.
  void warn_of_absent_lane(int lane, const void* caller);
  /// True in one lane of the running warp, the same one each time.
  bool elect();
  AsyncCopies& copies() { return copies_; }
  /// Lets everybody else run before it returns; costs `nanoseconds` of modelled time.
  void poll(double nanoseconds);
  /// With a seed: lets others run, so that they see what the thread has written so far.
  void give_way();
  SpinDetection& spins() { return spins_; }
  /// Modelled time that the block has spent otherwise than by running code, ns. The running thread waits for
  /// time to pass, so that its polls are not idle.
  double read_waited();
  /// The thread has called an atomic function on that word.
  void record_atomic(const void* word, const AtomicCall& call, bool wrote, WordWriters& writers);
  /// The threads that wait, and what they look at.
  std::span<Thread* const> polling() const { return polling_.in_order(); }
  /// The thread has looked at the word at `address` and seen `bits`. If it saw the same last time, the other
  /// threads of the block go first. If it has seen nothing else for many looks, it waits: a poll.
  void look(const void* address, std::uint64_t bits, unsigned bytes);
  void* shared_storage(const void* declaration, std::size_t bytes, std::size_t alignment,
                       const SharedMemory::Variables& variables);
  void* dynamic_shared() { return shared_.dynamic(); }
  /// Abandons the block; does not return.
  [[noreturn]] void fault(const std::string& sentence, cudaError_t code = cudaErrorLaunchFailure);
  /// A fault if the running thread's read-modify-write, described by `how`, reaches another GPU over a link
  /// that has none.
  void require_native_atomics(const void* address, const std::string& how);
  Thread& current() { return *current_; }
  ThreadNotes& notes_of(Thread& thread) {
    if (thread.notes == nullptr) make_notes();
    return *thread.notes;
  }
  /// The thread of that number, if it is of this block; else nullptr.
  Thread* thread_of(std::uint64_t race_number) {
    if (!KernelRecords::same_block(race_number, race_number_of(threads_.front()))) return nullptr;
    return &threads_[race_number - race_number_of(threads_.front())];
  }
  const Grid& grid() const { return grid_; }

  /// The runtime works in the stead of a CUDA thread until the end of the scope.
  class RuntimeTurn;

  // For its cluster and its asynchronous work.
  Cluster& cluster();
  bool has_neighbours() const { return cluster_ != nullptr && cluster_->size() > 1; }
  ThreadList& at_cluster_barrier() { return at_cluster_barrier_; }
  /// "block (3,0,0)".
  std::string name() const;
  /// "byte 4 of the shared variable 'cells' of block (3,0,0), declared at x.cu:12", of this block or another
  /// one of its cluster; "" if the address is in none.
  std::string describe_shared(const void* address) const;
  SharedMemory& shared() { return shared_; }
  /// nullptr: no thread has used an asynchronous unit.
  AsyncWork* async_work() const { return async_.get(); }
  void give_async_work(std::unique_ptr<AsyncWork> work) { async_ = std::move(work); }
  const SharedMemory& shared() const { return shared_; }
  const Operation& launch() const { return launch_; }
  MachineState& machine_state() const { return machine_state_; }
  Schedule& schedule() const { return schedule_; }
  /// For the race detector's stacks: kernel_thread() of run_facts.hpp reads it.
  std::uint64_t race_number_of(const Thread& thread) const {
    return KernelRecords::thread_number(grid_.shape, linear_index_, number_of(thread));
  }
  std::size_t current_number() const { return number_of(*current_); }
  /// "kernel 'x': thread (1,0,0) of block (0,0,0) ": how a sentence about the running thread begins.
  std::string who() const;
  /// Suspends the running thread until wake(), in `list` if there is one.
  void park(ThreadList* list = nullptr);
  /// Ends the wait of all of them.
  void wake(ThreadList& parked);
  void wake(Thread& parked);
  /// Where the running thread, and its shadows, meet others.
  ///@{
  void release(const OrderPoint& point) {
    if constexpr (!hb::kEnabled) return;
    launch_.contexts().meet(linear_index_, current_number(), point, hb::release);
    give_fences(point);
  }
  void acquire(const OrderPoint& point) {
    if constexpr (!hb::kEnabled) return;
    launch_.contexts().meet(linear_index_, current_number(), point, hb::acquire);
    take_fences(point);
  }
  ///@}
  /// The running thread, not its shadows, comes after what was released at `point`.
  void see(const char& point);
  /// A proxy fence of the running thread.
  void fence_proxy(Space space);
  /// An access of the running thread that the compiler did not see.
  void note_access(const void* memory, std::size_t bytes, bool write, const void* caller);
  /// The running thread is about to access a word atomically, passes a fence, accesses memory as volatile.
  /// What that is, vgpu/atomics.h says.
  ///@{
  void note_atomic(const void* word, int accesses, int order, int scope, const void* caller);
  void note_fence(int scope);
  void access_volatile(const void* memory, std::size_t bytes, bool write, const void* caller);
  ///@}
  /// Modelled time of the block, ns, and how it passes without work.
  double now() const;
  void pass_time_until(double time);
  /// The block has failed; whoever calls this must come back to the scheduler.
  void fail(const std::string& sentence, cudaError_t code);
  bool failed() const { return state_ == State::kFaulted; }
  /// Abandons the block if it has failed.
  void leave_if_failed();

  /// Where the scheduler is suspended while a block runs.
  static Fiber scheduler_fiber;

 private:
  struct Exchange {
    unsigned int mask;
    bool orders;
    const void* caller;  // of the first one
    unsigned int arrived = 0;
    int parity =
        0;  // two sets of values: a lane may already be in the next exchange while another still reads
    std::uint64_t values[2][32];
    unsigned int present[2];
    OrderPoint order[2];  // by parity
    ThreadList waiting;
  };
  struct Warp {
    unsigned int alive = 0;
    int elected = -1;  // lane; negative: none yet
    std::vector<std::unique_ptr<Exchange>> exchanges;
  };
  std::size_t number_of(const Thread& thread) const {
    return static_cast<std::size_t>(&thread - threads_.data());
  }
  hb::Context context_of(const Thread& thread) const {
    return launch_.contexts().of(linear_index_, number_of(thread));
  }
  FiberPool& fibers_of(const Thread& thread) const {
    return launch_.contexts().fibers(linear_index_, number_of(thread));
  }
  Thread& next_to_start() { return threads_[start_order_.empty() ? started_ : start_order_[started_]]; }
  static void fiber_entry();
  void run_threads(Fiber& fiber);
  void suspend();
  Fiber& fresh_fiber();
  Fiber& next();
  void end_thread();
  void open_barrier();
  void make_notes();
  void warn_of_barriers(const void* caller);
  void warn_of_lazy_loading(const void* word);
  void end_in_cluster();
  void complete(Exchange& exchange);
  /// suspend(), for what runs too rarely to be worth a copy of it.
  void let_others_run();
  /// `ran`: basic blocks of this run().
  void watch_polling(std::uint64_t ran);
  void become(Thread& thread);
  const void* point_in_block(const void* word) const;
  const void* point_in_gpu(const void* word) const;
  void give_fences(const OrderPoint& point);
  void take_fences(const OrderPoint& point);
  void remember(Thread& me, const void* word);
  /// No thread can go on at once: does a bulk copy that one waits for, or lets those go on that look at
  /// words.
  void find_runnable();
  void finish_async();
  /// Other blocks of its cluster can let this one go on.
  bool has_live_neighbours() const { return cluster_ != nullptr && cluster_->others_live(*this); }

  const Grid& grid_;
  std::uint64_t linear_index_;
  uint3 index_;
  MachineState& machine_state_;
  Schedule& schedule_;
  const Operation& launch_;

  std::vector<Thread> threads_;
  std::vector<ThreadNotes> notes_;          // of all threads, once one of them needs its own
  std::vector<std::uint32_t> start_order_;  // with a seed
  std::size_t started_ = 0;
  int resumed_in_a_row_ = 0, left_out_ = 0;
  std::size_t alive_;
  Thread* current_ = nullptr;
  ThreadList runnable_, looking_, polling_, at_barrier_, at_cluster_barrier_, at_primary_;
  SpinDetection spins_;
  std::vector<Warp> warps_;
  int barrier_value_ = 0, barrier_result_ = 0;
  bool barrier_has_value_ = false;
  // Addresses that the barrier's threads synchronise on alternately: a thread that has not left one barrier
  // yet must not be ordered after what others do between it and the next one.
  OrderPoint barrier_order_[2];
  int barrier_parity_ = 0;
  char fence_point_ = 0;                  // an address too
  bool has_fences_[3] = {};               // by Fence
  const void* barrier_caller_ = nullptr;  // of a thread that has come there
  char end_order_ = 0;                    // an address too

  std::unique_ptr<Cluster> own_cluster_;  // if no other
  Cluster* cluster_ = nullptr;
  AsyncCopies copies_;
  std::unique_ptr<AsyncWork> async_;
  SharedMemory shared_;

  State state_ = State::kReady;
  std::uint64_t work_ = 0;
  double run_from_ = 0, stalled_ = 0;
  std::uint64_t ran_before_ = 0;
  double poll_time_ = 0;
  std::optional<double> triggered_at_;
  double waited_ = 0;  // before this run(), for whatever
  bool read_time_ = false;
  Repetition states_;  // of the threads that poll
  std::uint64_t idle_since_ = ~std::uint64_t{0};
  std::string fault_sentence_;
  cudaError_t fault_code_ = cudaSuccess;
};

class Block::RuntimeTurn {
 public:
  RuntimeTurn(const Block& block, Thread& thread) : block_(block), thread_(thread) {
    if (thread.resumed) hb::pop_thread();
    hb::enter(hb::runtime_context());
    thread.in_runtime = true;
    thread.spins_on = nullptr;
  }
  ~RuntimeTurn() {
    hb::enter(block_.context_of(thread_));
    hb::push_thread(block_.race_number_of(thread_));
    thread_.resumed = true;
    thread_.in_runtime = false;
  }
  RuntimeTurn(const RuntimeTurn&) = delete;
  RuntimeTurn& operator=(const RuntimeTurn&) = delete;

 private:
  const Block& block_;
  Thread& thread_;
};

/// The block whose thread is running; nullptr in host code.
Block* current_block();
/// "(1,0,0)".
std::string position(const uint3& p);

}  // namespace vgpu
