// Handles that wait for their next user.
#pragma once

#include <cstddef>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace overlap {

/// Handles that nobody uses at the moment, each of a kind. Whoever takes one owns it, so two users never have
/// the same. Safe from any thread: ranks on real GPUs are threads. No handle is made or destroyed in here,
/// under the lock: that may wait for a GPU, and on virtual ones let another rank go on.
template <typename Kind, typename Handle>
class HandlePool {
 public:
  /// Of those of this kind the one that was given back last; none if there is none.
  std::optional<Handle> take(const Kind& kind) {
    return take_where([&kind](const Kind& other) { return other == kind; });
  }

  /// The same for any kind of which wanted(kind) is true.
  template <typename Wanted>
  std::optional<Handle> take_where(const Wanted& wanted) {
    const std::lock_guard lock(mutex_);
    for (auto idle = idle_.rbegin(); idle != idle_.rend(); ++idle) {
      if (!wanted(idle->first)) continue;
      std::optional<Handle> handle(std::move(idle->second));
      idle_.erase(std::next(idle).base());
      return handle;
    }
    return std::nullopt;
  }

  /// All of them, whatever their kind; whoever lets the result go has dropped them.
  std::vector<Handle> take_all() {
    const std::lock_guard lock(mutex_);
    std::vector<Handle> handles;
    for (auto& idle : idle_) handles.push_back(std::move(idle.second));
    idle_.clear();
    return handles;
  }

  /// From now on it waits for its next user.
  void give_back(const Kind& kind, Handle handle) {
    const std::lock_guard lock(mutex_);
    idle_.emplace_back(kind, std::move(handle));
  }

  std::size_t idle(const Kind& kind) const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& idle : idle_) count += idle.first == kind ? 1 : 0;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Kind, Handle>> idle_;  // in the order in which they came back; a few dozens at most
};

}  // namespace overlap
