// The bulk copies of a block (cp.async.bulk, TMA): asynchronous means late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/hopper/mbarrier.hpp"
#include "engine/hopper/tensor_map.hpp"

namespace vgpu {

/// What a copy moves: consecutive bytes, or a box of a tensor.
struct BulkRequest {
  std::byte* shared;
  std::byte* global;  // of consecutive bytes
  std::size_t bytes;  // those of the box that lie outside the tensor included
  bool tensor;
  TensorMap map;
  std::int32_t at[TensorMap::kMaxDimensions];
  const void* caller;  // return address into the kernel
  bool adds = false;   // a store of a box that adds to what is there
};

/// As late as CUDA allows: a load is done when a thread waits for it and nothing else in the block can run; a
/// store likewise reads for `.read` and writes for the full wait. With a seed: at any time after the issue.
class BulkCopies {
 public:
  /// Where a load goes: this block, or blocks of its cluster.
  struct Target {
    Block* block;
    Mbarriers* barriers;  // of the block
    Mbarrier* barrier;    // one of them
    std::byte* shared;
  };

  explicit BulkCopies(Block& block) : block_(block) {}

  /// A load to these targets; a store if there are none.
  void issue(const BulkRequest& request, std::vector<Target> targets);
  void store(const BulkRequest& request) { issue(request, {}); }
  void commit();
  /// Waits until at most the last `prior` groups of the thread are not done; `read`: not read.
  void wait(unsigned int prior, bool read);

  /// When the next copy is done that a thread is parked for, in modelled ns; nothing if there is none.
  std::optional<double> needed_at();
  /// Nothing else in the block can run: does that copy. False if there is none.
  bool do_needed();
  bool can_do_any() const;
  bool reaching_others() const;
  /// The return address into the kernel of an unfinished copy to that other block; else nullptr.
  const void* reaching(const Block& block) const;
  /// The same for any copy; `loads`: for any load.
  bool do_any(bool loads);
  /// With a seed: maybe does a step of some copy.
  void maybe_do_one();
  /// The block ends: completes the rest. Returns "" or an error's sentence.
  std::string finish();

 private:
  struct Copy {
    bool is_load() const { return !targets.empty(); }
    BulkRequest request;
    std::size_t thread, group;    // group: of a store
    std::size_t number;           // of the block's copies
    std::vector<Target> targets;  // of a load
    double read_at, done_at;      // modelled, ns
    bool read = false, read_seen = false, done = false;
    std::vector<std::byte> box;  // what was read
    memcheck::Written known;     // which bytes of it were written
    OrderPoint issued, fetched, written;
    char probed;  // its address: to synchronise on
  };
  struct Waiter {
    Thread* thread;
    std::size_t number;  // of the thread
    unsigned int prior;
    bool read;
  };

  /// The GPU of its global memory.
  int owner_of(const BulkRequest& request) const;
  void take_link(Copy& copy);
  void count(const Copy& copy) const;
  bool awaited(const Waiter& waiter, const Copy& copy) const;
  bool satisfied(const Waiter& waiter) const;
  bool needed(const Copy& copy) const;
  Copy* next_needed();
  /// Those that are not done; `loads`: only loads.
  std::vector<Copy*> unfinished(bool loads);
  /// Modelled time of its next step.
  static double step_at(const Copy& copy) {
    return !copy.is_load() && !copy.read ? copy.read_at : copy.done_at;
  }
  /// The next step of the copy: a load has one, a store two.
  void advance(Copy& copy);
  /// advance(), as late as the model says.
  void advance_on_demand(Copy& copy);
  void fetch(Copy& copy);
  void deliver(Copy& copy);
  bool accessible(const Copy& copy);
  void note(Copy& copy, Space space, const void* memory, std::size_t bytes, bool write);
  void note_global(Copy& copy, bool write);
  void finish_step(Copy& copy, OrderPoint& point);
  hb::Context engine(const Copy& copy) const;

  Block& block_;
  std::list<Copy> copies_;  // that are not done or whose threads have not waited for them, oldest first
  std::unordered_map<std::size_t, std::size_t> groups_;  // that are closed, by thread
  std::vector<Waiter> waiters_;
  std::size_t issued_ = 0, loads_ = 0;  // loads: that are not done
  double engine_free_ = 0;              // modelled, ns
};

}  // namespace vgpu
