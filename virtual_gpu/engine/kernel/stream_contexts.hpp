// What the CUDA threads of one stream run on: ThreadSanitizer contexts in the race build, and fibers.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "engine/hopper/proxy_contexts.hpp"
#include "engine/kernel/fiber.hpp"
#include "race/happens_before.hpp"

namespace vgpu {

/// In the race build a stream has kContexts contexts: several, so that threads of a kernel can race with each
/// other, but not one per CUDA thread, because ThreadSanitizer slows down and forgets with thousands of them.
/// Each context has stacks of its own: on a shared one, the locals of two threads that have nothing to do
/// with each other would seem to race.
class StreamContexts {
 public:
  explicit StreamContexts(std::string name) : name_(std::move(name)) {}
  StreamContexts(const StreamContexts&) = delete;
  StreamContexts& operator=(const StreamContexts&) = delete;
  ~StreamContexts() {
    for (const auto* contexts : {&contexts_, &copying_}) {
      for (hb::Context context : *contexts) {
        if (context != nullptr) hb::destroy_context(context);
      }
    }
    for (const auto& [rank, context] : ending_) hb::destroy_context(context);
  }

  const std::string& name() const { return name_; }
  /// The stream's own context: copies, events.
  hb::Context own() { return context(0); }
  /// The context of a CUDA thread.
  hb::Context of(std::size_t block, std::size_t thread) { return context(index(block, thread)); }
  /// What does the asynchronous copies of that CUDA thread.
  hb::Context copying(std::size_t block, std::size_t thread) {
    if constexpr (!hb::kEnabled) return nullptr;
    hb::Context& found = copying_[index(block, thread)];
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
    auto& pool = fibers_[index(block, thread)];
    if (pool == nullptr) pool = std::make_unique<FiberPool>(kThreadStack);
    return *pool;
  }

  /// The thread, and its shadows, meet others at `point`.
  ///@{
  void release(std::size_t block, std::size_t thread, const OrderPoint& point) {
    if constexpr (!hb::kEnabled) return;
    const std::size_t i = index(block, thread);
    hb::release(context(i), &point.generic);
    if (!proxies_.made()) return;
    hb::release(proxies_.shadow(View::kShared, i), &point.shared);
    hb::release(proxies_.shadow(View::kGlobal, i), &point.global);
    hb::release(proxies_.shadow(View::kOverwriting, i), &point.overwriting);
  }
  void acquire(std::size_t block, std::size_t thread, const OrderPoint& point) {
    if constexpr (!hb::kEnabled) return;
    const std::size_t i = index(block, thread);
    hb::acquire(context(i), &point.generic);
    if (!proxies_.made()) return;
    hb::acquire(proxies_.shadow(View::kShared, i), &point.shared);
    hb::acquire(proxies_.shadow(View::kGlobal, i), &point.global);
    hb::acquire(proxies_.shadow(View::kOverwriting, i), &point.overwriting);
  }
  ///@}
  /// From now on threads have shadows (proxy_contexts.hpp).
  void use_proxies() {
    if constexpr (hb::kEnabled) proxies();
  }
  /// A proxy fence of the thread.
  void fence(std::size_t block, std::size_t thread, Space space) {
    if constexpr (!hb::kEnabled) return;
    const std::size_t i = index(block, thread);
    const char* order = &fences_[i];
    hb::release(context(i), order);
    if (space == Space::kShared) {
      hb::acquire(proxies().shadow(View::kShared, i), order);
      hb::acquire(proxies().shadow(View::kOverwriting, i), order);
    } else {
      hb::acquire(proxies().shadow(View::kGlobal, i), order);
    }
  }
  /// What does the `copy`-th bulk copy of that thread, and what looks whether it needs a fence.
  ///@{
  hb::Context engine(std::size_t block, std::size_t thread, std::size_t copy) {
    return hb::kEnabled ? proxies().engine(index(block, thread), copy) : nullptr;
  }
  hb::Context probe(View view, std::size_t block, std::size_t thread, std::size_t copy) {
    return hb::kEnabled ? proxies().probe(view, index(block, thread), copy) : nullptr;
  }
  ///@}

  /// What does the wgmma of the warpgroup that begins with that thread, and what looks whether they need a
  /// fence.
  ///@{
  hb::Context tensor_cores(std::size_t block, std::size_t thread) {
    return hb::kEnabled ? proxies().tensor_cores(index(block, thread)) : nullptr;
  }
  hb::Context tensor_probe(std::size_t block, std::size_t thread) {
    return hb::kEnabled ? proxies().tensor_probe(index(block, thread)) : nullptr;
  }
  ///@}
  /// The thread comes after the wgmma that were released at `point`, and so may what overwrites their
  /// operands. Its other shadows see nothing: what they show to the hardware is only what a fence shows them.
  void see(std::size_t block, std::size_t thread, const void* point) {
    if constexpr (!hb::kEnabled) return;
    const std::size_t i = index(block, thread);
    hb::acquire(context(i), point);
    if (proxies_.made()) hb::acquire(proxies_.shadow(View::kOverwriting, i), point);
  }

  /// Orders all threads of a kernel that begins after what the stream has done. Blocks of a cluster of so
  /// many share no contexts: what one of them has seen the other one has not.
  void begin_kernel(std::size_t cluster) {
    if constexpr (!hb::kEnabled) return;
    cluster_ = cluster;
    hb::release(own(), this);
    hb::release(own(), &kernel_begin_);
    for (std::size_t i = 1; i < kContexts; ++i) hb::acquire(context(i), this);
    proxies_.each([this](hb::Context context) { hb::acquire(context, this); });
  }
  /// Orders the stream's next operation after all threads of the kernel.
  void end_kernel() {
    if constexpr (!hb::kEnabled) return;
    for (std::size_t i = 1; i < kContexts; ++i) hb::release(context(i), this);
    for (hb::Context context : copying_) {
      if (context != nullptr) hb::release(context, this);
    }
    proxies_.each([this](hb::Context context) { hb::release(context, this); });
    hb::acquire(own(), this);
  }

 private:
  static constexpr std::size_t kContexts = hb::kContexts;
  // CUDA threads rarely hold much on their stacks; the memory is only reserved.
  static constexpr std::size_t kThreadStack = 128 * 1024;

  std::size_t index(std::size_t block, std::size_t thread) const {
    const std::size_t of_block = kContexts / cluster_;
    return block % cluster_ * of_block + (thread + 5 * (block / cluster_)) % of_block;
  }
  /// Made when it is first needed: each costs about a millisecond with g++ 12.
  hb::Context context(std::size_t i) {
    if constexpr (!hb::kEnabled) return nullptr;
    if (contexts_[i] == nullptr) contexts_[i] = hb::make_context(name_);
    return contexts_[i];
  }

  ProxyContexts& proxies() {
    if (!proxies_.made()) proxies_.make(name_, &kernel_begin_);
    return proxies_;
  }

  std::string name_;
  std::size_t cluster_ = 1;
  std::array<hb::Context, kContexts> contexts_{}, copying_{};
  std::map<std::size_t, hb::Context> ending_;
  ProxyContexts proxies_;
  // Addresses to synchronise on: what the stream had done when a kernel began; each context's fences.
  char kernel_begin_ = 0;
  std::array<char, kContexts> fences_{};
  std::array<std::unique_ptr<FiberPool>, kContexts> fibers_;
};

}  // namespace vgpu
