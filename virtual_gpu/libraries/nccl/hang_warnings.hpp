// Calls that virtual GPUs carry out and real ones may hang on. In the race build, since only it knows the
// lines.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "libraries/nccl/exchange.hpp"

namespace vgpu::nccl {

class HangWarnings {
 public:
  /// A rank, on GPU `device`, has called its part of `exchange` of the communicator `clique`.
  void note(Runtime& runtime, const void* clique, const std::shared_ptr<Exchange>& exchange, const Call& call,
            int device);

 private:
  struct Called {
    std::uint64_t number;  // in the order of all calls
    Call call;
  };
  struct Record {
    std::shared_ptr<Exchange> exchange;
    const void* clique;
    std::map<int, Called> calls;  // by GPU
  };
  static void warn_of_order(Runtime& runtime, const Record& one, const Record& other);

  std::deque<Record> latest_;
  std::uint64_t calls_ = 0;
};

}  // namespace vgpu::nccl
