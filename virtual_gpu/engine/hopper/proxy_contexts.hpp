// ThreadSanitizer contexts for what a stream's kernels do asynchronously (race build only).
//
// A bulk copy is done by hardware of its own, in another proxy: it sees a kernel's ordinary accesses only
// behind a proxy fence. Each thread context T therefore has shadows, one for shared and one for global
// memory: what a shadow has seen is what a bulk copy of that thread sees. Barriers, warp functions and
// mbarriers order shadows as they order threads, atomics do not; a fence lets the shadow see what its thread
// sees. A copy is an access by an engine, ordered after T at the issue. Before it, a probe reads the same
// bytes, ordered after the shadow only: it races with what the engine may access but no fence has shown it.
// A wgmma reads shared memory likewise, ordered after all threads of its warpgroup and after their shadows.
//
// Shared memory that a copy overwrites must not be read any more either, and so its probe writes there. What
// wgmma has read needs no fence, so this probe follows a third shadow, which sees that a wgmma has ended. The
// other two do not: they would see with it what the warpgroup's threads had written before it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "race/happens_before.hpp"

namespace vgpu {

/// What threads, and their shadows, synchronise on; only its addresses count.
struct OrderPoint {
  char generic, shared, global, overwriting;
};

enum class Space { kShared, kGlobal };
/// What a shadow is asked for: whether ordinary writes to shared or global memory can be seen there, or
/// whether shared memory may be overwritten.
enum class View { kShared, kGlobal, kOverwriting };

class ProxyContexts {
 public:
  /// So many copies of one thread have engines that are not ordered by chance: one does one after the other.
  static constexpr std::size_t kEngines = 3;

  ProxyContexts() = default;
  ProxyContexts(const ProxyContexts&) = delete;
  ProxyContexts& operator=(const ProxyContexts&) = delete;
  ~ProxyContexts() {
    each([](hb::Context context) { hb::destroy_context(context); });
  }

  /// False as long as the stream has run no kernel that needs them. Until then all shadows would know the
  /// same: what the stream had done when its kernel began.
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
  /// What does a copy of thread context `i`.
  hb::Context engine(std::size_t i, std::size_t copy) {
    return made_if_needed(engines_[i][copy % kEngines], " (TMA)");
  }
  /// What looks whether a copy of thread context `i` needs a proxy fence.
  hb::Context probe(View view, std::size_t i, std::size_t copy) {
    return made_if_needed(probes_[number(view)][i][copy % kEngines], " (TMA, async proxy)");
  }
  /// What does the wgmma of the warpgroup whose first thread has thread context `i`, and what looks whether
  /// they need a proxy fence.
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
