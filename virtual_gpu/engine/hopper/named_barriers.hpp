// The named barriers of a block (PTX, "bar.sync" with a number): __syncthreads of some of its threads.
#pragma once

#include <array>
#include <string>

#include "engine/hopper/proxy_contexts.hpp"
#include "engine/kernel/thread_list.hpp"

namespace vgpu {

class Block;

class NamedBarriers {
 public:
  explicit NamedBarriers(Block& block) : block_(block) {}

  /// The running thread waits until `threads` threads have arrived at barrier `id`.
  void wait(int id, int threads, const void* caller);
  /// For deadlock reports.
  std::string describe() const;

 private:
  struct Barrier {
    int threads = 0;  // that open it, as the first one of this turn said
    const void* caller = nullptr;
    ThreadList waiting;
    OrderPoint order[2];  // used alternately, as the block's own barrier does
    int parity = 0;
  };

  Block& block_;
  std::array<Barrier, 16> barriers_;  // the first is __syncthreads, elsewhere
};

}  // namespace vgpu
