#include "engine/kernel/block.hpp"

#include <cstdlib>
#include <map>
#include <new>
#include <utility>

#include "engine/kernel/coverage.hpp"
#include "engine/machine_state.hpp"
#include "vgpu/symbols.h"

// The kernel's built-in variables (kernel.h declares them constant; for one CUDA thread they are).
uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace vgpu {
namespace {

thread_local Block* running_block = nullptr;  // none in other threads of the operating system
Fiber* running_fiber = nullptr;               // where the running CUDA thread runs
constexpr int kMaxResumed = 1024;             // threads that go on before one starts

/// " (mask 0x0000ffff at x.cu:12)".
std::string describe_mask(unsigned int mask, const void* caller) {
  char text[32];
  std::snprintf(text, sizeof text, " (mask 0x%08x", mask);
  return text + at_line(caller) + ")";
}

}  // namespace

Fiber Block::scheduler_fiber;

Block* current_block() { return running_block; }

Block::Block(const Grid& grid, std::uint64_t linear_index, MachineState& machine_state,
             const Operation& launch, bool may_be_impatient)
    : grid_(grid),
      linear_index_(linear_index),
      index_{static_cast<unsigned>(linear_index % grid.grid.x),
             static_cast<unsigned>(linear_index / grid.grid.x % grid.grid.y),
             static_cast<unsigned>(linear_index / grid.grid.x / grid.grid.y)},
      machine_state_(machine_state),
      schedule_(machine_state.schedule()),
      launch_(launch),
      threads_(std::size_t{grid.block.x} * grid.block.y * grid.block.z),
      alive_(threads_.size()),
      spins_(schedule_, may_be_impatient),
      warps_((threads_.size() + 31) / 32),
      copies_(launch, linear_index, threads_.size(), schedule_),
      shared_(grid.dynamic_shared_bytes, grid.shared_limit, grid.declared_shared) {
  std::size_t i = 0;
  for (unsigned z = 0; z < grid.block.z; ++z) {
    for (unsigned y = 0; y < grid.block.y; ++y) {
      for (unsigned x = 0; x < grid.block.x; ++x, ++i) {
        threads_[i].index = {x, y, z};
        threads_[i].lane = static_cast<int>(i % 32);
        threads_[i].warp = static_cast<int>(i / 32);
        warps_[i / 32].alive |= 1u << (i % 32);
      }
    }
  }
  start_order_ = schedule_.random_order(threads_.size());
}

Block::~Block() {
  // After a fault or a deadlock its threads are abandoned where they are; others may have their stacks.
  for (const Thread& thread : threads_) {
    if (thread.fiber != nullptr) fibers_of(thread).put(*thread.fiber);
  }
}

void* Block::shared_storage(const void* declaration, std::size_t bytes, std::size_t alignment,
                            const SharedMemory::Variables& variables) {
  const RuntimeTurn turn(*this, *current_);
  void* memory = shared_.declared(declaration, bytes, alignment, variables);
  if (memory == nullptr) {
    fault("kernel '" + grid_.name + "' uses " + std::to_string(shared_.bytes()) +
          " bytes of shared memory, more than " + std::to_string(grid_.shared_limit));
  }
  return memory;
}

Block::State Block::run(double now) {
  running_block = this;
  running_symbols = machine_state_.symbols().of(launch_.stream->device());
  blockIdx = index_;
  blockDim = grid_.block;
  gridDim = grid_.grid;
  waited_ += stalled_ + (state_ == State::kPolling ? poll_time_ : 0);
  state_ = State::kReady;
  runnable_.append(polling_);
  run_from_ = now;
  stalled_ = 0;
  ran_before_ = basic_blocks();
  Fiber& first = next();
  if (&first != &scheduler_fiber) switch_fiber(scheduler_fiber, first);
  const std::uint64_t ran = basic_blocks() - ran_before_;
  kernel_basic_blocks += ran;
  work_ += ran - std::min(ran, spins_.take_waited());
  running_block = nullptr;
  running_symbols = nullptr;
  if (state_ == State::kPolling && schedule_.is_in_doubt()) watch_polling(ran);
  return state_;
}

inline void Block::become(Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
  ++turns;
}

/// The fiber that runs next: a suspended thread's, a fresh one for threads that have not started, or the
/// scheduler's.
inline Fiber& Block::next() {
  const bool unstarted = started_ < threads_.size();
  if (!unstarted && runnable_.empty()) find_runnable();
  // A warp that goes on at once is done with its fibers, and its data is still in the cache, when the next
  // one starts. But its threads may wait, in a loop of votes, for one that has not started. With a seed any
  // order goes.
  const bool resume =
      !runnable_.empty() &&
      (!unstarted || (schedule_.random() ? schedule_.pick(2) == 1 : resumed_in_a_row_ < kMaxResumed));
  if (resume) {
    ++resumed_in_a_row_;
    become(*runnable_.pop(schedule_));
    running_fiber = current_->fiber;
    return *running_fiber;
  }
  resumed_in_a_row_ = 0;
  if (unstarted) return fresh_fiber();
  if (state_ == State::kReady) {
    state_ = alive_ == 0                                     ? State::kFinished
             : !polling_.empty()                             ? State::kPolling
             : has_live_neighbours() || !at_primary_.empty() ? State::kAwaitsOthers
                                                             : State::kStuck;
  }
  return scheduler_fiber;
}

/// A fiber that will run the next thread to start; the scheduler's if the host has no memory for its stack.
Fiber& Block::fresh_fiber() {
  try {
    running_fiber = &fibers_of(next_to_start()).get(&Block::fiber_entry);
    return *running_fiber;
  } catch (const std::bad_alloc&) {
    fail("kernel '" + grid_.name +
             "': so many CUDA threads wait at the same time that the host has no memory for their stacks",
         cudaErrorLaunchOutOfResources);
    return scheduler_fiber;
  }
}

void Block::fiber_entry() { running_block->run_threads(*running_fiber); }

void Block::run_threads(Fiber& fiber) {
  FiberPool& home = fibers_of(next_to_start());
  while (started_ < threads_.size()) {
    Thread& thread = next_to_start();
    if (&fibers_of(thread) != &home) {  // only in the race build: the next thread has other stacks
      home.put(fiber);
      switch_fiber(fiber, fresh_fiber());
    }
    ++started_;
    thread.fiber = &fiber;
    become(thread);
    hb::enter(context_of(thread));
    hb::push_callers(launch_.site);
    hb::push_thread(race_number_of(thread));
    grid_.body->run_thread();
    if (thread.resumed) hb::pop_thread();
    hb::pop_thread();
    hb::pop_callers(launch_.site);
    hb::enter(hb::runtime_context());
    end_thread();
  }
  home.put(fiber);
  switch_fiber(fiber, next());
}

inline void Block::suspend() {
  Fiber& from = *current_->fiber;
  Fiber& to = next();
  if (&from != &to) switch_fiber(from, to);
}

void Block::let_others_run() { suspend(); }

void Block::end_thread() {
  if (hb::kEnabled && has_neighbours()) hb::release(context_of(*current_), &end_order_);
  if (alive_ == 1) {  // while there is a thread whose fault it could be
    copies_.finish();
    if (async_ != nullptr) finish_async();
    if (const std::string where = shared_.describe_overrun(); !where.empty())
      fault("kernel '" + grid_.name + "': a thread of " + name() + " has written " + where,
            cudaErrorIllegalAddress);
  }
  --alive_;
  current_->fiber = nullptr;
  schedule_.note_progress();
  if (hb::kEnabled && alive_ == 0 && has_neighbours()) end_in_cluster();
  if (alive_ > 0 && at_barrier_.size() == alive_) open_barrier();
  if (cluster_ != nullptr) cluster_->leave(*current_);
  Warp& warp = warps_[current_->warp];
  warp.alive &= ~(1u << current_->lane);
  for (const auto& exchange : warp.exchanges) {
    if (exchange->arrived != 0 && (exchange->mask & warp.alive & ~exchange->arrived) == 0)
      complete(*exchange);
  }
}

void Block::open_barrier() {
  barrier_result_ = barrier_value_;
  barrier_has_value_ = false;
  barrier_parity_ ^= 1;
  barrier_caller_ = nullptr;
  runnable_.append(at_barrier_);
}

inline void Block::barrier(const void* caller) {
  Thread& me = *current_;
  if (hb::kEnabled && caller != barrier_caller_) warn_of_barriers(caller);
  const OrderPoint& order = barrier_order_[barrier_parity_];
  // The block that took the last ticket reads what the others wrote: in the Guide's example without a fence.
  if (me.notes != nullptr && me.notes->ticket != nullptr)
    hb::acquire(context_of(me), point_in_gpu(std::exchange(me.notes->ticket, nullptr)));
  release(order);
  {
    const RuntimeTurn turn(*this, me);
    if (at_barrier_.size() + 1 == alive_) {
      schedule_.note_progress();
      open_barrier();
    } else {
      at_barrier_.push(&me);
      suspend();
    }
  }
  acquire(order);
}

}  // namespace vgpu

// Here and not with the other kernel functions: the barrier decides how fast tiled kernels run, so it should
// be one frame.
void __syncthreads() {
  if (!vgpu::hb::left_out("__syncthreads")) vgpu::running_block->barrier(__builtin_return_address(0));
}

namespace vgpu {

int Block::barrier_reduce(int predicate, int (*combine)(int, int)) {
  barrier_value_ = barrier_has_value_ ? combine(barrier_value_, predicate) : predicate;
  barrier_has_value_ = true;
  barrier();
  return barrier_result_;  // the next barrier, which would overwrite it, cannot open before this thread is
                           // there
}

void Block::complete(Exchange& exchange) {
  exchange.present[exchange.parity] = exchange.arrived;
  exchange.arrived = 0;
  exchange.parity ^= 1;
  schedule_.note_progress();
  runnable_.append(exchange.waiting);
}

const std::uint64_t* Block::exchange(unsigned int mask, std::uint64_t value, unsigned int* present,
                                     bool orders, const void* caller) {
  Thread& me = *current_;
  RuntimeTurn turn(*this, me);
  Warp& warp = warps_[me.warp];
  if (!(mask >> me.lane & 1)) {
    fault("kernel '" + grid_.name + "': lane " + std::to_string(me.lane) +
          " calls a warp function whose mask does not name it");
  }
  Exchange* meeting = nullptr;
  for (const auto& exchange : warp.exchanges) {
    if (exchange->mask == mask && exchange->orders == orders) meeting = exchange.get();
  }
  if (meeting == nullptr) {
    warp.exchanges.push_back(std::make_unique<Exchange>());
    meeting = warp.exchanges.back().get();
    meeting->mask = mask;
    meeting->orders = orders;
  }
  if (meeting->arrived == 0) meeting->caller = caller;
  const int parity = meeting->parity;
  if (orders) release(meeting->order[parity]);
  meeting->values[parity][me.lane] = value;
  meeting->arrived |= 1u << me.lane;
  // In the order of time the last one waits for its turn, too: the lanes go on in the order in which they
  // came.
  const bool is_last = (mask & warp.alive & ~meeting->arrived) == 0, goes_on = is_last && schedule_.random();
  if (!goes_on) meeting->waiting.push(&me);
  if (is_last) complete(*meeting);
  if (!goes_on) suspend();
  if (orders) acquire(meeting->order[parity]);
  *present = meeting->present[parity];
  return meeting->values[parity];
}

void Block::require_native_atomics(const void* address, const std::string& how) {
  if (machine_state_.machine().peer_atomics) return;
  const RuntimeTurn turn(*this, current());
  const Allocation* allocation = machine_state_.memory().find(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::kDevice ||
      allocation->device == launch_.stream->device())
    return;
  fault(
      who() + "reads and writes memory of GPU " + std::to_string(allocation->device) + " in one access" +
      how +
      ", and the link to it has no native atomics (cudaDevP2PAttrNativeAtomicSupported is 0): another access "
      "may come between");
}

void Block::fault(const std::string& sentence, cudaError_t code) {
  hb::enter(hb::runtime_context());
  fail(sentence, code);
  // The block's fibers are abandoned where they are: a kernel holds nothing that needs destroying.
  switch_fiber(*current_->fiber, scheduler_fiber);
  std::abort();
}

std::string Block::describe() const {
  std::size_t in_warp_functions = 0;
  std::map<unsigned int, const void*> masks;
  for (const Warp& warp : warps_) {
    for (const auto& exchange : warp.exchanges) {
      in_warp_functions += exchange->waiting.size();
      if (!exchange->waiting.empty()) masks[exchange->mask] = exchange->caller;
    }
  }
  std::string text = name() + ":";
  const auto add = [&text](std::size_t count, const char* what) {
    if (count > 0) text += " " + std::to_string(count) + what;
  };
  add(at_barrier_.size(), " in __syncthreads");
  add(at_cluster_barrier_.size(), " in barrier_cluster_wait");
  add(at_primary_.size(), " in cudaGridDependencySynchronize");
  add(in_warp_functions, " in a warp function");
  for (const auto& [mask, caller] : masks) text += describe_mask(mask, caller);
  if (async_ != nullptr) text += async_->describe();
  add(polling_.size(), " polling");
  add(threads_.size() - alive_, " ended");
  return text;
}

}  // namespace vgpu
