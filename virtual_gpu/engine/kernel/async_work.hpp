// What goes on beside the threads of a block.
#pragma once

#include <string>

namespace vgpu {

/// Copies and products in flight, and the barriers of their threads: hopper/async_unit.hpp.
class AsyncWork {
 public:
  virtual ~AsyncWork() = default;
  /// Nothing else in the block can run: does the earliest copy or product that a thread is parked for; with a
  /// seed any one. False if there is none.
  virtual bool do_needed() = 0;
  /// The same for any that is in flight; `loads`: for any load.
  virtual bool do_any(bool loads) = 0;
  /// True if a copy to another block of the cluster is in flight.
  virtual bool reaches_others() const = 0;
  /// For deadlock reports.
  virtual std::string describe() const = 0;
  /// The block ends: completes the rest. Returns "" or an error's sentence.
  virtual std::string finish() = 0;
};

}  // namespace vgpu
