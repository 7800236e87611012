// ThreadSanitizer contexts for what a stream's kernels do asynchronously (race build only).
//
// A bulk copy runs in the async proxy and sees a kernel's ordinary accesses only behind a proxy fence. Each
// thread context T therefore has two shadows, for shared and for global memory: a bulk copy of the thread
// sees what the shadow has seen. Barriers, warp functions and mbarriers order shadows as they order threads;
// atomics do not; a proxy fence orders the shadow after its thread. The copy itself is an access by an
// engine, ordered after T at the issue. Before it, a probe, ordered after the shadow alone, reads the same
// bytes: it races with each access that no fence covers. A wgmma reads shared memory likewise, ordered after
// all threads of its warpgroup and after their shadows.
//
// A load must not overwrite shared memory that is still read, so its probe writes. Reads by a wgmma need no
// fence: this probe follows a third shadow, which acquires the end of a wgmma. The other two must not acquire
// it, because that would also order them after the warpgroup's earlier writes.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "race/happens_before.hpp"

namespace vgpu {

/// Where threads and their shadows synchronise; only the addresses count.
struct OrderPoint {
  char generic, shared, global, overwriting;
  char fences[3];  // by Fence
};

enum class Space { kShared, kGlobal };
/// The question to a shadow: are ordinary writes visible, or may shared memory be overwritten?
enum class View { kShared, kGlobal, kOverwriting };

class ProxyContexts {
 public:
  /// Engines of a thread context: consecutive copies must not be ordered by sharing one.
  static constexpr std::size_t kEngines = 3;

  ProxyContexts() = default;
  ProxyContexts(const ProxyContexts&) = delete;
  ProxyContexts& operator=(const ProxyContexts&) = delete;
  ~ProxyContexts() {
    each([](hb::Context context) { hb::destroy_context(context); });
  }

  /// Made when the stream runs the first kernel that needs them: earlier, all shadows would be equal.
  bool made() const { return shadows_[0][0] != nullptr; }
  void make(const std::string& name, const void* kernel_begin) {
    name_ = name;
    for (auto& shadows : shadows_) {
      for (hb::Context& shadow : shadows) {
        shadow = hb::make_context(name + " (shadow)");
        hb::acquire(shadow, kernel_begin);
      }
    }
  }
  hb::Context shadow(View view, std::size_t i) const { return shadows_[number(view)][i]; }
  /// Performs a copy of thread context `i`.
  hb::Context engine(std::size_t i, std::size_t copy) {
    return made_if_needed(engines_[i][copy % kEngines], " (TMA)");
  }
  /// Checks that a proxy fence precedes it.
  hb::Context probe(View view, std::size_t i, std::size_t copy) {
    return made_if_needed(probes_[number(view)][i][copy % kEngines], " (TMA, async proxy)");
  }
  /// The same for a wgmma of the warpgroup whose first thread has thread context `i`.
  ///@{
  hb::Context tensor_cores(std::size_t i) { return made_if_needed(tensor_cores_[i], " (wgmma)"); }
  hb::Context tensor_probe(std::size_t i) {
    return made_if_needed(tensor_probes_[i], " (wgmma, async proxy)");
  }
  ///@}
  template <class Visit>
  void each(Visit visit) const {
    const auto those_made = [&visit](const auto& contexts) {
      for (hb::Context context : contexts) {
        if (context != nullptr) visit(context);
      }
    };
    for (const auto& shadows : shadows_) those_made(shadows);
    for (const auto& engines : engines_) those_made(engines);
    for (const auto& view : probes_) {
      for (const auto& probes : view) those_made(probes);
    }
    those_made(tensor_cores_);
    those_made(tensor_probes_);
  }

 private:
  static constexpr std::size_t kViews = 3;
  static std::size_t number(View view) { return static_cast<std::size_t>(view); }
  hb::Context made_if_needed(hb::Context& context, const char* what) {
    if (context == nullptr) context = hb::make_context(name_ + what);
    return context;
  }

  using OfThread = std::array<hb::Context, kEngines>;
  std::string name_;
  std::array<std::array<hb::Context, hb::kContexts>, kViews> shadows_{};
  std::array<OfThread, hb::kContexts> engines_{};
  std::array<std::array<OfThread, hb::kContexts>, kViews> probes_{};
  std::array<hb::Context, hb::kContexts> tensor_cores_{}, tensor_probes_{};
};

}  // namespace vgpu
