// The registers of a multiprocessor, which the warpgroups of a block share out (PTX, "setmaxnreg").
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/kernel/thread_list.hpp"

namespace vgpu {

class Block;

/// What a kernel's threads have when it begins is the compiler's business and unknown here: only warpgroups
/// that have asked for more or given back count.
class RegisterPool {
 public:
  explicit RegisterPool(Block& block) : block_(block) {}

  /// The running thread's warpgroup wants `count` for each thread, more or less than before. Who wants more
  /// waits until the others leave enough.
  void set(int count, bool more, const void* caller);
  /// For deadlock reports: who waits, and who has how many.
  std::string describe() const;
  /// A sentence on a warpgroup of which only some threads have called; "" if there is none.
  std::string describe_unfinished() const;

 private:
  struct Call {
    int count;
    bool more;
    const void* caller;
    std::size_t threads = 0;  // that have called
    bool granted = false;
  };
  struct Warpgroup {
    int count = 0;  // that each thread has; 0: unknown
    std::vector<Call> calls;
    std::vector<std::size_t> made;  // calls, by thread
    ThreadList waiting;
  };

  int taken() const;
  void grant_waiting();

  Block& block_;
  std::vector<Warpgroup> warpgroups_;
};

}  // namespace vgpu
