// The mbarriers of a block: barriers in shared memory that count arrivals and bytes (PTX, "mbarrier").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/hopper/proxy_contexts.hpp"
#include "engine/kernel/thread_list.hpp"

namespace vgpu {

class Block;

/// One phase after the other: a phase completes when neither arrivals nor bytes are missing.
class Mbarrier {
 public:
  /// Threads that are parked until the phase completes.
  const ThreadList& waiting() const { return waiting_; }

 private:
  friend class Mbarriers;

  std::size_t made_by_ = 0;                // number of the thread that initialised it
  bool published_ = false;                 // by a fence of that thread, to bulk copies of all
  std::set<std::size_t> published_for_{};  // by proxy fences of these threads, to their own
  std::int64_t count_ = 0;                 // arrivals of each phase
  std::int64_t arrivals_ = 0;              // that are missing in this one
  std::int64_t bytes_ = 0;                 // likewise; negative: more came than is expected so far
  std::uint64_t phase_ = 0;
  std::uint64_t copied_ = 0,
                seen_ = 0;  // phases up to the last in which a copy ended; up to the last seen complete
  ThreadList waiting_;
  OrderPoint order_[2];                // by the parity of the phase
  double latest_ = 0;                  // modelled time of what last happened to it, ns
  double completed_at_[2] = {0, 0};    // likewise, of the phase; by parity
  const void* made_at_ = nullptr;      // return addresses into the kernel
  const void* expected_at_ = nullptr;  // of who last said that bytes will come
  const void* copied_at_ = nullptr;    // of the last copy that ended
};

/// All functions act for the running thread; `by` is its block, which may be another one of the cluster.
/// `caller`: a return address into the kernel.
class Mbarriers {
 public:
  explicit Mbarriers(Block& block) : block_(block) {}

  void init(const void* word, std::uint32_t count, const void* caller);
  /// Expects `bytes` more in this phase, then arrives `count` times. Returns the phase.
  std::uint64_t arrive(Block& by, const void* word, std::uint32_t count, std::uint32_t bytes, bool release,
                       const void* caller);
  /// True if the phase of this parity is complete. If not, a thread that `may_park` parks until it is; with a
  /// seed it may return at once, as try_wait on real GPUs does after a while.
  bool wait(const void* word, bool parity, bool may_park, bool acquire, const void* caller);
  /// The thread executes fence.mbarrier_init or a `proxy` fence.
  void publish(std::size_t thread, bool proxy);
  /// The mbarrier that a bulk copy will report to; an error without a fence that published it.
  Mbarrier& find_published(Block& by, const void* word, const void* caller);
  /// Bytes of a copy arrive at modelled time `time`, ns.
  void complete(Mbarrier& barrier, std::uint32_t bytes, double time, const void* copied_at);
  /// Where threads synchronise on the current phase.
  static OrderPoint& point(Mbarrier& barrier) { return barrier.order_[barrier.phase_ & 1]; }
  /// Changes with every change of the barrier.
  std::uint64_t bits(const void* word) const;

  /// A sentence on a wait that returned at once, perhaps too early; else "".
  std::string describe(const PassedWait& wait) const;
  /// For deadlock reports.
  std::string describe() const;
  /// A sentence on a bulk load that no thread has waited for; else "".
  std::string describe_unseen() const;

 private:
  Mbarrier& find(Block& by, const void* word, const void* caller);
  void advance(Mbarrier& barrier, double time);
  std::string name_of(const void* word) const;

  Block& block_;
  std::map<const void*, std::unique_ptr<Mbarrier>> barriers_;
  std::size_t unpublished_ = 0;
};

}  // namespace vgpu
