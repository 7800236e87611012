#include "engine/kernel/fiber.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "engine/maps.hpp"
#include "race/happens_before.hpp"

namespace vgpu {

#ifdef VGPU_FIBER_UCONTEXT

namespace {
void prepare(Fiber& fiber, std::size_t bytes, void (*entry)()) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack_top - bytes;
  fiber.context.uc_stack.ss_size = bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
}
}  // namespace

#else

// System V AMD64 ABI: rbx, rbp and r12 to r15 belong to the caller. Leaving by `jmp` instead of `ret` spares
// the return predictor a certain miss.
asm(R"(
.text
.p2align 4
.globl vgpu_switch_stack
.hidden vgpu_switch_stack
.type vgpu_switch_stack, @function
vgpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size vgpu_switch_stack, . - vgpu_switch_stack
)");

namespace {
/// Lays out the stack as if the fiber had been switched away from just before its first instruction.
void prepare(Fiber& fiber, std::size_t, void (*entry)()) {
  auto* top = reinterpret_cast<std::uint64_t*>(fiber.stack_top);
  *--top = 0;  // where `entry` would return to; keeps the stack 16-byte aligned at its first instruction
  *--top = reinterpret_cast<std::uint64_t>(entry);
  for (int saved_register = 0; saved_register < 6; ++saved_register) *--top = 0;
  fiber.stack_pointer = top;
}
}  // namespace

#endif

namespace {
// Stacks that all start at the same offset of a page compete for the same few cache sets; fiber i starts i
// cache lines further down, modulo one page.
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kColours = 63;
// Several, so that a function with large local arrays does not step over them.
constexpr std::size_t kGuardPages = 16;
std::size_t mapped_bytes(std::size_t stack_bytes) {
  return whole_pages(stack_bytes) + (kGuardPages + 1) * page_size();
}
/// So many of that size without guards are one mapping: 256 of CUDA threads.
std::size_t stacks_of_slab(std::size_t stack_bytes) {
  constexpr std::size_t kSlab = std::size_t{32} << 20;
  return std::max<std::size_t>(1, kSlab / stack_bytes);
}
// A guarded stack is two mappings (maps.hpp). Beyond these and those of shared memory, 64 GPUs need thousands
// of mappings for allocations.
constexpr int kMapsOfStack = 2;
constexpr std::size_t kMaxGuarded = hb::kEnabled ? 8'000 : 16'000;
std::size_t guarded_stacks = 0;  // of all pools
constexpr std::uint64_t kCanary = 0x9e3779b97f4a7c15;
std::size_t unguarded_bytes(std::size_t stack_bytes) { return whole_pages(stack_bytes) + page_size(); }
}  // namespace

std::uint64_t Fiber::state() const {
#ifdef __x86_64__
  constexpr int kRegisters = 5;  // beside the frame pointer; elsewhere they stand above the frame's address
#else
  constexpr int kRegisters = 0;
#endif
  std::uint64_t hash = 0;
  const auto* end = reinterpret_cast<const std::uint64_t*>(stack_top);
  for (const auto* word = static_cast<const std::uint64_t*>(frame) - kRegisters; word < end; ++word) {
    hash = (hash ^ *word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

FiberPool::~FiberPool() {
  for (std::byte* slab : slabs_) munmap(slab, stacks_of_slab(stack_bytes_) * unguarded_bytes(stack_bytes_));
  const std::size_t mapped = mapped_bytes(stack_bytes_);
  for (const auto& fiber : all_) {
    if (fiber->canary != nullptr) continue;
    --guarded_stacks;
    give_maps_back(kMapsOfStack);
    const auto end = (reinterpret_cast<std::uintptr_t>(fiber->stack_top) / page_size() + 1) * page_size();
    munmap(reinterpret_cast<void*>(end - mapped), mapped);
  }
}

void FiberPool::place(Fiber& fiber, std::byte* end) const {
  fiber.stack_top = end - (1 + all_.size() % kColours) * kCacheLine;
}

// The stacks of a slab lie side by side, and so do slabs: all of them are one map.
std::unique_ptr<Fiber> FiberPool::make_unguarded() {
  const std::size_t bytes = unguarded_bytes(stack_bytes_);
  if (left_in_slab_ == 0) {
    void* slab = mmap(nullptr, stacks_of_slab(stack_bytes_) * bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) throw std::bad_alloc();
    slabs_.push_back(static_cast<std::byte*>(slab));
    left_in_slab_ = stacks_of_slab(stack_bytes_);
  }
  auto fiber = std::make_unique<Fiber>();
  std::byte* base = slabs_.back() + --left_in_slab_ * bytes;
  fiber->canary = reinterpret_cast<std::uint64_t*>(base);
  *fiber->canary = kCanary;
  place(*fiber, base + bytes);
  return fiber;
}

void FiberPool::check(const Fiber& fiber) {
  if (*fiber.canary == kCanary) return;
  std::fputs("virtual GPUs: a CUDA thread's stack was too small for its local variables\n", stderr);
  std::abort();  // others' stacks are overwritten
}

std::unique_ptr<Fiber> FiberPool::make() {
  if (guarded_stacks >= kMaxGuarded || !take_maps(kMapsOfStack)) return make_unguarded();
  // From below: guard pages, stack, one page that takes up the colour.
  const std::size_t mapped = mapped_bytes(stack_bytes_);
  void* base =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    give_maps_back(kMapsOfStack);
    throw std::bad_alloc();
  }
  if (mprotect(base, kGuardPages * page_size(), PROT_NONE) != 0) {  // the program has all maps that there are
    munmap(base, mapped);
    give_maps_back(kMapsOfStack);
    return make_unguarded();
  }
  auto fiber = std::make_unique<Fiber>();
  fiber->guard_begin = static_cast<std::byte*>(base);
  fiber->guard_end = fiber->guard_begin + kGuardPages * page_size();
  place(*fiber, static_cast<std::byte*>(base) + mapped);
  ++guarded_stacks;
  return fiber;
}

Fiber& FiberPool::get(void (*entry)()) {
  if (idle_.empty()) {
    all_.push_back(make());
    idle_.push_back(all_.back().get());
  }
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  prepare(fiber, whole_pages(stack_bytes_), entry);
  return fiber;
}

}  // namespace vgpu
