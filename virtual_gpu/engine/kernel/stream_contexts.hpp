// What the CUDA threads of one stream run on: ThreadSanitizer contexts in the race build, and fibers.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/hopper/proxy_contexts.hpp"
#include "engine/host/settings.hpp"
#include "engine/kernel/fiber.hpp"
#include "race/happens_before.hpp"

namespace vgpu {

/// Fences, by their scope, the widest first.
enum Fence { kFenceOfSystem, kFenceOfGpu, kFenceOfBlock };
inline constexpr std::array kFences = {kFenceOfSystem, kFenceOfGpu, kFenceOfBlock};

/// In the race build threads of a stream run in two sets of kContexts contexts: several, so that threads of a
/// kernel can race with each other, but not one per CUDA thread, because ThreadSanitizer slows down and
/// forgets with thousands of them. A barrier of a block orders its set. So a bit of a block's number says
/// which set is the block's: what differs in that bit is ordered by the program alone, and a run for each bit
/// (Settings::separating_bit) separates all blocks.
/// Each context has stacks of its own: on a shared one, the locals of two threads that have nothing to do
/// with each other would seem to race.
class StreamContexts {
 public:
  StreamContexts(std::string name, int device) : name_(std::move(name)), device_(device) {}
  /// Of kernels that run beside their primary, which are ordered after no more of the stream than that one
  /// was.
  explicit StreamContexts(StreamContexts& stream) : StreamContexts(stream.name_, stream.device_) {
    stream_ = &stream;
  }
  StreamContexts(const StreamContexts&) = delete;
  StreamContexts& operator=(const StreamContexts&) = delete;
  ~StreamContexts() {
    for (const auto& [rank, context] : ending_) hb::destroy_context(context);
    if (beginning_ != nullptr) hb::destroy_context(beginning_);
  }

  const std::string& name() const { return name_; }
  /// The stream's own context: copies, events. Beside it: what a kernel is ordered after.
  hb::Context own() {
    if (memcheck::kEnabled) return memcheck::library(device_);
    if (stream_ == nullptr) return context(sets_[0], 0);
    if (hb::kEnabled && beginning_ == nullptr) beginning_ = hb::make_context(name_);
    return beginning_;
  }
  /// The context of a CUDA thread.
  hb::Context of(std::size_t block, std::size_t thread) {
    return context(set_of(block), index(block, thread));
  }
  /// What does the asynchronous copies of that CUDA thread.
  hb::Context copying(std::size_t block, std::size_t thread) {
    if constexpr (!hb::kEnabled) return nullptr;
    hb::Context& found = set_of(block).copying[index(block, thread)];
    if (found == nullptr) found = hb::make_context(name_ + " (memcpy_async)");
    return found;
  }
  /// What ends blocks of that rank in their clusters.
  hb::Context ending(std::size_t rank) {
    hb::Context& found = ending_[rank];
    if (found == nullptr) found = hb::make_context(name_ + " (end of block)");
    return found;
  }
  /// Fibers for that CUDA thread.
  FiberPool& fibers(std::size_t block, std::size_t thread) {
    if constexpr (!hb::kEnabled) {
      // Never destroyed: at the program's end, blocks that wait for ever give their fibers back to it.
      static FiberPool& shared = *new FiberPool(kThreadStack);
      return shared;
    }
    auto& pool = set_of(block).fibers[index(block, thread)];
    if (pool == nullptr) pool = std::make_unique<FiberPool>(kThreadStack);
    return *pool;
  }
  /// Stacks for code of the host that the stream calls.
  FiberPool& call_stacks() {
    if (call_stacks_ == nullptr) call_stacks_ = std::make_unique<FiberPool>(kHostStack);
    return *call_stacks_;
  }

  /// The thread, and its shadows, meet others at `point`. `order`: hb::release or hb::acquire.
  template <class Order>
  void meet(std::size_t block, std::size_t thread, const OrderPoint& point, Order order) {
    if constexpr (!hb::kEnabled) return;
    const std::size_t i = index(block, thread);
    order(context(set_of(block), i), &point.generic);
    const ProxyContexts& shadows = proxies_of(block);
    if (!shadows.made()) return;
    order(shadows.shadow(View::kShared, i), &point.shared);
    order(shadows.shadow(View::kGlobal, i), &point.global);
    order(shadows.shadow(View::kOverwriting, i), &point.overwriting);
  }
  /// From now on threads of that block, and of the blocks that it can meet, have shadows
  /// (proxy_contexts.hpp).
  void use_proxies(std::size_t block) {
    if constexpr (hb::kEnabled) proxies(block);
  }
  /// A proxy fence of the thread.
  void fence(std::size_t block, std::size_t thread, Space space) {
    if constexpr (!hb::kEnabled) return;
    const std::size_t i = index(block, thread);
    const char* order = &set_of(block).fences[i];
    hb::release(of(block, thread), order);
    if (space == Space::kShared) {
      hb::acquire(proxies(block).shadow(View::kShared, i), order);
      hb::acquire(proxies(block).shadow(View::kOverwriting, i), order);
    } else {
      hb::acquire(proxies(block).shadow(View::kGlobal, i), order);
    }
  }
  /// What the thread has done at its last fence, not what it does since, comes before whoever acquires
  /// `point`.
  ///@{
  void hold(Fence fence, std::size_t block, std::size_t thread) {
    hb::Context& held = held_by(fence, block, thread);
    hb::release(of(block, thread), &held);
    hb::acquire(held, &held);
  }
  void give(Fence fence, std::size_t block, std::size_t thread, const void* point) {
    hb::release(held_by(fence, block, thread), point);
  }
  ///@}
  /// From now on the thread gives what others gave at `point`, too.
  void take(Fence fence, std::size_t block, std::size_t thread, const void* point) {
    hb::acquire(held_by(fence, block, thread), point);
  }
  /// What does the `copy`-th bulk copy of that thread, and what looks whether it needs a fence.
  ///@{
  hb::Context engine(std::size_t block, std::size_t thread, std::size_t copy) {
    return hb::kEnabled ? proxies(block).engine(index(block, thread), copy) : nullptr;
  }
  hb::Context probe(View view, std::size_t block, std::size_t thread, std::size_t copy) {
    return hb::kEnabled ? proxies(block).probe(view, index(block, thread), copy) : nullptr;
  }
  ///@}

  /// What does the wgmma of the warpgroup that begins with that thread, and what looks whether they need a
  /// fence.
  ///@{
  hb::Context tensor_cores(std::size_t block, std::size_t thread) {
    return hb::kEnabled ? proxies(block).tensor_cores(index(block, thread)) : nullptr;
  }
  hb::Context tensor_probe(std::size_t block, std::size_t thread) {
    return hb::kEnabled ? proxies(block).tensor_probe(index(block, thread)) : nullptr;
  }
  ///@}
  /// The thread comes after the wgmma that were released at `point`, and so may what overwrites their
  /// operands. Its other shadows see nothing: what they show to the hardware is only what a fence shows them.
  void see(std::size_t block, std::size_t thread, const void* point) {
    if constexpr (!hb::kEnabled) return;
    const ProxyContexts& shadows = proxies_of(block);
    hb::acquire(of(block, thread), point);
    if (shadows.made()) hb::acquire(shadows.shadow(View::kOverwriting, index(block, thread)), point);
  }

  /// Orders the threads of a kernel, block by block, after what the stream has done. Blocks of clusters can
  /// show each other what their shadows know.
  ///@{
  void begin_kernel(bool clusters) {
    if constexpr (!hb::kEnabled) return;
    clusters_ = clusters;
    ended_primary_ = nullptr;
    if (stream_ != nullptr) hb::acquire(own(), &stream_->kernel_begin_);
    hb::release(own(), &kernel_begin_);
    for (const ProxyContexts& proxies : proxies_)
      proxies.each([this](hb::Context one) { hb::acquire(one, &kernel_begin_); });
  }
  void begin_block(std::size_t block) {
    if constexpr (!hb::kEnabled) return;
    Set& set = set_of(block);
    if (!std::exchange(set.runs, true))
      set.each([this](hb::Context one) { hb::acquire(one, &kernel_begin_); });
  }
  ///@}
  /// cudaGridDependencySynchronize(): the thread comes after the kernel that has ended in `primary`, and so
  /// do the bulk copies that it issues.
  void acquire_end(std::size_t block, std::size_t thread, const StreamContexts& primary) {
    if constexpr (!hb::kEnabled) return;
    ended_primary_ = &primary;
    hb::acquire(of(block, thread), &primary);
    const ProxyContexts& shadows = proxies_of(block);
    if (shadows.made()) hb::acquire(shadows.shadow(View::kGlobal, index(block, thread)), &primary);
  }
  /// Orders the stream's next operation after all threads of the kernel.
  void end_kernel() {
    if constexpr (!hb::kEnabled) return;
    for (Set& set : sets_) {
      if (std::exchange(set.runs, false)) set.each([this](hb::Context one) { hb::release(one, this); });
    }
    for (const ProxyContexts& proxies : proxies_)
      proxies.each([this](hb::Context one) { hb::release(one, this); });
    hb::acquire((stream_ == nullptr ? this : stream_)->own(), this);
  }

 private:
  hb::Context& held_by(Fence fence, std::size_t block, std::size_t thread) {
    hb::Context& held = set_of(block).held[fence][index(block, thread)];
    if (held == nullptr) held = hb::make_context(name_ + " (fence)");
    return held;
  }

  static constexpr std::size_t kContexts = hb::kContexts;
  // CUDA threads rarely hold much on their stacks; the memory is only reserved.
  static constexpr std::size_t kThreadStack = 128 * 1024;

  struct Set {
    std::array<hb::Context, kContexts> threads{}, copying{};
    std::array<hb::Context, kContexts>
        held[kFences.size()]{};            // by Fence: they have seen what threads had at their last one
    std::array<char, kContexts> fences{};  // addresses to synchronise on
    std::array<std::unique_ptr<FiberPool>, kContexts> fibers;
    bool runs = false;  // blocks of the stream's kernel

    Set() = default;
    ~Set() {
      for (const auto* contexts : {&threads, &copying}) visit(*contexts, hb::destroy_context);
      for (const auto& contexts : held) visit(contexts, hb::destroy_context);
    }
    template <class Visit>
    void each(Visit action) const {
      for (const auto* contexts : {&threads, &copying}) visit(*contexts, action);
    }
    template <class Visit>
    static void visit(const std::array<hb::Context, kContexts>& contexts, Visit action) {
      for (hb::Context one : contexts) {
        if (one != nullptr) action(one);
      }
    }
  };

  Set& set_of(std::size_t block) { return sets_[block >> bit_ & 1]; }
  static std::size_t index(std::size_t block, std::size_t thread) { return (thread + 5 * block) % kContexts; }
  /// Made when it is first needed: each costs about a millisecond with g++ 12.
  hb::Context context(Set& set, std::size_t i) {
    if constexpr (!hb::kEnabled) return memcheck::gpu(device_);
    hb::Context& found = set.threads[i];
    if (found == nullptr) {
      found = hb::make_context(name_);
      hb::acquire(found, &kernel_begin_);
    }
    return found;
  }

  ProxyContexts& proxies_of(std::size_t block) {
    return proxies_[separates_proxies_ ? block >> bit_ & 1 : 0];
  }
  ProxyContexts& proxies(std::size_t block) {
    ProxyContexts& own = proxies_of(block);
    for (ProxyContexts& each : proxies_) {
      const bool needed = &each == &own || (clusters_ && separates_proxies_);
      if (!needed || each.made()) continue;
      each.make(name_, &kernel_begin_);
      if (ended_primary_ != nullptr) each.each([this](hb::Context one) { hb::acquire(one, ended_primary_); });
    }
    return own;
  }

  std::string name_;
  int device_;
  StreamContexts* stream_ = nullptr;               // beside whose kernels these run
  hb::Context beginning_ = nullptr;                // then: what its kernel comes after
  const StreamContexts* ended_primary_ = nullptr;  // what a thread of the kernel has seen the end of
  std::size_t bit_ = hb::kEnabled ? settings().separating_bit() : 0;
  const bool separates_proxies_ = settings().separates_proxies();
  bool clusters_ = false;
  char kernel_begin_ = 0;  // an address to synchronise on: what the stream had done when a kernel began
  std::array<Set, 2> sets_;
  std::map<std::size_t, hb::Context> ending_;
  std::unique_ptr<FiberPool> call_stacks_;
  std::array<ProxyContexts, 2> proxies_;  // of a set; or the first one of both, because they are many
};

}  // namespace vgpu
