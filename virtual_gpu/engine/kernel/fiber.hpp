// Fibers: execution contexts with a stack of their own, switched in user space. CUDA threads that have to
// wait run on them. A switch saves the callee-saved registers only; the floating-point control words are
// shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#ifndef __x86_64__
#define VGPU_FIBER_UCONTEXT 1
#endif
#ifdef VGPU_FIBER_UCONTEXT
#include <ucontext.h>
#else
extern "C" [[gnu::visibility("hidden")]] void vgpu_switch_stack(void** save, void* load);
#endif

namespace vgpu {

/// A suspended execution context. The running one is suspended by switching away from it.
struct Fiber {
#ifdef VGPU_FIBER_UCONTEXT
  ucontext_t context;
#else
  void* stack_pointer = nullptr;
#endif
  std::byte* stack_top = nullptr;  // nullptr: the operating system's stack
  std::byte* guard_begin = nullptr;
  std::byte* guard_end = nullptr;   // where the stack begins
  std::uint64_t* canary = nullptr;  // the stack's last word, if there are no guard pages

  /// True if an access to `address` says that the stack was too small.
  bool overflows_at(const void* address) const { return guard_begin <= address && address < guard_end; }
  const void* frame = nullptr;  // of the function that polls: what is above are its callers'
  /// A hash of its callers' registers and stack, of a thread that is suspended in a poll.
  std::uint64_t state() const;
};

/// Continues `to` and leaves the running context in `from`. Returns when somebody switches to `from`.
inline void switch_fiber(Fiber& from, Fiber& to) {
#ifdef VGPU_FIBER_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  vgpu_switch_stack(&from.stack_pointer, to.stack_pointer);
#endif
}

/// Bytes of a stack for code of the host: as much as an operating system thread has. They are only reserved.
inline constexpr std::size_t kHostStack = 8 << 20;

/// Makes fibers and keeps their stacks for the next one. Stacks are reserved, not touched; guard pages below
/// each turn an overflow into a fault instead of a silent overwrite. Linux gives a process some 65,000 maps,
/// and a stack with its guard takes two: the stacks of tens of thousands of fibers beyond those have none,
/// and a canary instead, which is looked at when a fiber is given back.
class FiberPool {
 public:
  /// `stack_bytes` is rounded up to whole pages.
  explicit FiberPool(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {}
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool();

  /// A fiber that starts in `entry` when it is first switched to. `entry` never returns; it ends by giving
  /// the fiber back and switching away for the last time. Throws std::bad_alloc.
  Fiber& get(void (*entry)());
  /// The fiber will not be continued any more. Its stack stays valid until the next get(), so the running
  /// fiber may give itself back before its last switch.
  void put(Fiber& fiber) {
    if (fiber.canary != nullptr) check(fiber);
    idle_.push_back(&fiber);
  }

 private:
  std::unique_ptr<Fiber> make();
  std::unique_ptr<Fiber> make_unguarded();
  void place(Fiber& fiber, std::byte* end) const;
  static void check(const Fiber& fiber);

  std::size_t stack_bytes_;
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<std::byte*> slabs_;  // of stacks without guards
  std::size_t left_in_slab_ = 0;   // stacks of the last one that are not taken
  std::vector<Fiber*> idle_;
};

}  // namespace vgpu
