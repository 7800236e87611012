// The wgmmas of a block: each is one operation of 128 threads, done as late as CUDA allows.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/hopper/proxy_contexts.hpp"
#include "engine/hopper/wgmma_product.hpp"
#include "engine/kernel/shared_memory.hpp"
#include "engine/kernel/thread_list.hpp"
#include "vgpu/wgmma.h"

namespace vgpu {

class Block;

/// A wgmma is issued when the last thread of its warpgroup issues it. It is done, and reads A, B and D, when
/// a thread waits for it and nothing else in the block can run; with a seed at any time after the issue.
/// Those of a warpgroup are done in order.
class Warpgroups {
 public:
  explicit Warpgroups(Block& block) : block_(block) {}

  /// These act for the running thread; `caller`: a return address into the kernel.
  ///@{
  void multiply(float* fragment, const WgmmaRequest& request, const void* caller);
  void fence();
  void commit();
  /// Waits until at most the last `pending` groups of the thread are not done.
  void wait(unsigned int pending);
  /// The thread's fragment at `values` ends.
  void end_fragment(const float* values);
  ///@}

  /// Modelled time, ns, of the next wgmma that a thread is parked for.
  std::optional<double> needed_at() const;
  /// Nothing else in the block can run: does that product.
  void do_needed();
  bool can_do_any() const;
  /// The same for any product that is issued. can_do_any() holds.
  void do_any();
  void maybe_do_one();

  /// For deadlock reports.
  std::string describe() const;
  /// A sentence on a wgmma that no thread has waited for when the block ends; else "".
  std::string describe_unawaited() const;

 private:
  struct Product {
    WgmmaRequest request;
    const void* caller;
    std::size_t group;       // of the warpgroup's groups
    std::size_t issued = 0;  // threads that have issued it
    std::size_t seen = 0;    // threads that have waited for it
    double done_at = 0;      // modelled, ns
    bool late = false;       // with a seed: not before nothing else can run
    WgmmaFragments fragments{};
    OrderPoint order;
    char done;  // its address: to synchronise on
  };
  /// A fragment as its thread saw it last, at a wait.
  struct Seen {
    const float* values;
    std::uint64_t sum;
  };
  struct Member {
    std::size_t issued = 0, seen = 0;  // products of the warpgroup that it has issued, and waited for
    std::size_t groups = 0;            // that it has closed
    bool fenced = false;
    // Fragments that it has seen since its last fence, and that no product has got since.
    std::vector<Seen> unfenced;

    void forget(const float* fragment) {
      std::erase_if(unfenced, [fragment](const Seen& seen) { return seen.values == fragment; });
    }
  };
  struct Waiter {
    Thread* thread;
    std::size_t products;  // that must be done
  };
  struct Warpgroup {
    std::size_t first_thread = 0;
    std::deque<Product> products;  // not yet seen by all
    std::size_t forgotten = 0;     // before the first of them
    std::size_t done = 0;
    std::array<Member, kWarpgroupThreads> members;
    std::vector<Waiter> waiters;

    Product& product(std::size_t number) { return products[number - forgotten]; }
    const Product& product(std::size_t number) const { return products[number - forgotten]; }
    bool can_go_on() const {
      return done < forgotten + products.size() && product(done).issued == kWarpgroupThreads;
    }
  };

  Warpgroup& own(const char* what);
  Member& member_of(Warpgroup& warpgroup) const;
  Warpgroup* next_needed() const;
  /// Those that can go on; with `late` products too.
  std::vector<Warpgroup*> ready(bool late) const;
  void require_fence(const Member& member, const float* fragment, const WgmmaRequest& request,
                     const void* caller);
  void require_equal(const Product& product, const WgmmaRequest& request, std::size_t group,
                     const void* caller);
  std::vector<const std::byte*> find(const WgmmaOperand& operand, const Product& product, const char* name);
  void do_next(Warpgroup& warpgroup);
  void do_next_on_demand(Warpgroup& warpgroup);
  void note(const Warpgroup& warpgroup, Product& product, const std::vector<const std::byte*>& chunks);

  Block& block_;
  std::vector<std::unique_ptr<Warpgroup>> warpgroups_;
  double tensor_cores_free_ = 0;  // modelled, ns
};

}  // namespace vgpu
