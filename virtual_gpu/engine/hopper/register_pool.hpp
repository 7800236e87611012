// The registers of a multiprocessor that the warpgroups of a block redistribute (PTX, "setmaxnreg").
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/kernel/thread_list.hpp"

namespace vgpu {

class Block;

/// The compiler's initial number of registers is unknown here: only warpgroups that have called setmaxnreg
/// count.
class RegisterPool {
 public:
  explicit RegisterPool(Block& block) : block_(block) {}

  /// setmaxnreg.inc (`more`) or .dec of the running thread; .inc waits until the others leave enough.
  void set(int count, bool more, const void* caller);
  /// For deadlock reports.
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
