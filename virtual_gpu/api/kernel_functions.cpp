// The functions that kernels call.
#include <cstring>

#include "engine/host/own_thread.hpp"
#include "engine/kernel/block.hpp"
#include "engine/kernel/coverage.hpp"
#include "engine/runtime.hpp"
#include "vgpu/async_copy.h"
#include "vgpu/types.h"

using vgpu::Block;

// Declared here, not included: kernel.h declares the built-in variables constant, block.cpp defines them
// variable.
void __syncthreads();
int __syncthreads_count(int predicate) {
  return vgpu::current_block()->barrier_reduce(predicate != 0, [](int a, int b) { return a + b; });
}
int __syncthreads_and(int predicate) {
  return vgpu::current_block()->barrier_reduce(predicate != 0, [](int a, int b) { return a & b; });
}
int __syncthreads_or(int predicate) {
  return vgpu::current_block()->barrier_reduce(predicate != 0, [](int a, int b) { return a | b; });
}

void cudaTriggerProgrammaticLaunchCompletion() { vgpu::current_block()->trigger_dependents(); }
void cudaGridDependencySynchronize() {
  if (!vgpu::hb::left_out("cudaGridDependencySynchronize")) vgpu::current_block()->await_primary();
}

void __nanosleep(unsigned int nanoseconds) {
  Block& block = *vgpu::current_block();
  block.poll(std::max<double>(nanoseconds, block.grid().poll_ns));
}

namespace vgpu {
void between_parts() {
  Block& block = *current_block();
  if (block.schedule().pick(8) == 1) block.poll(block.grid().poll_ns);
}
}  // namespace vgpu

long long clock64() {
  const vgpu::Machine& machine = vgpu::runtime().machine();
  const double cycles = static_cast<double>(vgpu::basic_blocks()) * machine.cycles_per_basic_block +
                        vgpu::current_block()->read_waited() * machine.clock_ghz;
  return static_cast<long long>(cycles);
}

[[noreturn]] void __trap() {
  Block& block = *vgpu::current_block();
  block.fault("kernel '" + block.grid().name + "' called __trap()");
}

void __syncwarp(unsigned int mask) {
  if (vgpu::hb::left_out("__syncwarp")) return;
  unsigned int present;
  vgpu::current_block()->exchange(mask, 0, &present, true, __builtin_return_address(0));
}

unsigned int __ballot_sync(unsigned int mask, int predicate) {
  unsigned int present;
  const std::uint64_t* values =
      vgpu::current_block()->exchange(mask, predicate != 0, &present, false, __builtin_return_address(0));
  unsigned int ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((present >> lane & 1) != 0 && values[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}

int __all_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

namespace vgpu {

void* shared_storage(const void* declaration, std::size_t bytes, std::size_t alignment, const char* names,
                     const char* file, int line) {
  return current_block()->shared_storage(declaration, bytes, alignment, {names, file, line});
}
void* dynamic_shared() { return current_block()->dynamic_shared(); }

void grid_sync() {
  Block& block = *current_block();
  GridBarrier* meeting = block.grid().meeting.get();
  if (meeting == nullptr)
    block.fault("kernel '" + block.grid().name +
                "' calls grid.sync() and was not launched by "
                "cudaLaunchCooperativeKernel, which real GPUs need");
  __syncthreads();
  if (block.current_number() == 0) {
    const std::uint64_t generation = meeting->generation;
    const OrderPoint& order = meeting->order[generation % 2];
    const dim3& grid = block.grid().grid;
    block.release(order);
    {
      const Block::RuntimeTurn turn(block, block.current());
      if (++meeting->arrived == std::uint64_t{grid.x} * grid.y * grid.z) {
        meeting->arrived = 0;
        ++meeting->generation;
        block.schedule().note_progress();
      }
    }
    while (meeting->generation == generation) block.poll(block.grid().poll_ns);
    block.acquire(order);
  }
  __syncthreads();
}

const std::uint64_t* warp_exchange(unsigned int mask, std::uint64_t value, unsigned int* present) {
  return current_block()->exchange(mask, value, present, false, __builtin_return_address(0));
}
void note_absent_lane(int lane) {
  if constexpr (hb::kEnabled) current_block()->warn_of_absent_lane(lane, __builtin_return_address(0));
}
int lane_index() { return current_block()->current().lane; }

void note_load(const void* address, std::uint64_t bits, unsigned bytes, ProgramPlace at,
               const std::uint64_t* awaited) {
  Block* block = current_block();
  if (block == nullptr) return;  // host code
  note_look(address, bits, at);
  if (awaited != nullptr) block->notes_of(block->current()).looked.awaited = *awaited;
  block->look(address, bits, bytes);
}

void note_look(const void* address, std::uint64_t bits, ProgramPlace at) {
  if (Block* block = current_block())
    block->notes_of(block->current()).looked = {address, bits, at, std::nullopt};
}

void record_atomic(const void* address, const AtomicCall& call, bool wrote) {
  Block* block = current_block();
  if (block == nullptr) return;
  const Block::RuntimeTurn turn(*block, block->current());
  block->record_atomic(address, call, wrote, runtime().word_writers());
}

// Host code that uses atomic words may run before the first CUDA call, and in threads that make none.
void note_progress() {
  Block* block = current_block();
  if (block != nullptr) {
    block->spins().note_atomic_write();
    return block->schedule().note_progress();
  }
  Runtime* started = on_own_thread() ? runtime_if_started() : nullptr;
  if (started != nullptr) started->schedule().note_progress();
}

void give_way() noexcept {
  if (Block* block = current_block()) block->give_way();
}

void note_store(const void* address) {
  note_progress();
  Block* block = current_block();
  if (block == nullptr) return;
  const Block::RuntimeTurn turn(*block, block->current());
  runtime().foreign_words().wrote(runtime().memory(), address, block->launch().stream->device());
}

void note_atomic(const void* word, int accesses, int order, int scope) noexcept {
  if (Block* block = current_block())
    block->note_atomic(word, accesses, order, scope, __builtin_return_address(0));
}
void fence(int scope) noexcept {
  Block* block = current_block();
  if (block == nullptr) return __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if constexpr (hb::kEnabled) block->note_fence(scope);
  // A flag that it writes next may be volatile. If it writes atomically, this may be the fence behind a lock.
  if (scope < kBlockScope && !block->spins().writes_atomically()) block->give_way();
}

void require_own_word(const void* address, const char* scope, const char* file, int line) {
  Block* block = current_block();
  if (block == nullptr) return;
  const int writer = runtime().foreign_words().writer(address);
  if (writer == kHost || writer == block->launch().stream->device()) return;
  const Block::RuntimeTurn turn(*block, block->current());
  const std::string path = file;
  block->fault(block->who() + "reads a word at " + scope + " scope at " + path.substr(path.rfind('/') + 1) +
               ":" + std::to_string(line) + ", and GPU " + std::to_string(writer) + " has written it (" +
               runtime().memory().locate(address) + "): what another GPU writes is read at system scope");
}

void require_native_atomics(const void* address, ProgramPlace at) {
  Block* block = current_block();
  if (block == nullptr || runtime().machine().peer_atomics) return;
  const std::string path = at.file;
  block->require_native_atomics(address,
                                " at " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(at.line));
}

// Host code has no hardware that copies.
void copy_async(void* to, const void* from, std::size_t bytes, std::size_t zeros) {
  Block* block = current_block();
  if (block != nullptr) {
    const Block::RuntimeTurn turn(*block, block->current());
    const void* caller = __builtin_return_address(0);
    return block->copies().issue(block->current_number(), {to, from, bytes, zeros, caller});
  }
  std::memcpy(to, from, bytes);
  std::memset(static_cast<std::byte*>(to) + bytes, 0, zeros);
}
void commit_copies() {
  if (hb::left_out("commit of asynchronous copies")) return;
  Block* block = current_block();
  if (block == nullptr) return;
  const Block::RuntimeTurn turn(*block, block->current());
  block->copies().commit(block->current_number());
}
void wait_for_copies(unsigned int prior) {
  if (hb::left_out("wait for asynchronous copies")) return;
  Block* block = current_block();
  if (block == nullptr) return;
  const Block::RuntimeTurn turn(*block, block->current());
  block->copies().wait(block->current_number(), prior);
}
void require_aligned(const void* to, const void* from, std::size_t bytes, std::size_t alignment) {
  const auto all = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  Block* block = current_block();
  if (block == nullptr || all % alignment == 0) return;
  block->fault("kernel '" + block->grid().name + "': an asynchronous copy of " + std::to_string(bytes) +
                   " bytes has an address or a size that is no multiple of " + std::to_string(alignment),
               cudaErrorMisalignedAddress);
}
void misused_pipeline(const char* sentence) {
  Block* block = current_block();
  if (block == nullptr) throw std::logic_error(sentence);
  block->fault("kernel '" + block->grid().name + "': " + sentence);
}

bool order_left_out(const char* name) { return hb::left_out(name); }

}  // namespace vgpu
