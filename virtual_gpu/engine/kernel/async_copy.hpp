// Asynchronous copies of a block's threads (vgpu/async_copy.h).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/kernel/stream_contexts.hpp"
#include "engine/schedule.hpp"
#include "engine/streams/operation.hpp"

namespace vgpu {

/// To the race detector a copy is an access by an engine's context, ordered after its issue and before what
/// its thread does after the wait. Threads of one context share an engine. A thread's copies are done in
/// order, so that none is ordered after a later issue.
class AsyncCopies {
 public:
  struct Request {
    void* to;
    const void* from;
    std::size_t bytes, zeros;
    const void* caller;  // return address into the kernel
  };

  AsyncCopies(const Operation& launch, std::size_t block, std::size_t threads, Schedule& schedule)
      : launch_(launch), block_(block), threads_(threads), schedule_(schedule) {}

  void issue(std::size_t thread, const Request& request);
  void commit(std::size_t thread);
  void wait(std::size_t thread, unsigned int prior);
  /// Does what nobody has waited for.
  void finish();

 private:
  struct Copy {
    Request request;
    std::size_t group;
    std::unique_ptr<char> order;  // its address: to synchronise on
  };
  struct ThreadCopies {
    std::vector<Copy> copies;  // that are not awaited yet, oldest first
    std::size_t done = 0;      // of them
    std::size_t groups = 0;    // that are closed
  };

  StreamContexts& contexts() const;
  ThreadCopies& of(std::size_t thread);
  /// With a seed: maybe does the next copy of some thread.
  void maybe_do_one();
  void do_next(std::size_t thread);

  const Operation& launch_;
  std::size_t block_, threads_;
  Schedule& schedule_;
  std::vector<ThreadCopies> by_thread_;  // empty before the first copy
};

}  // namespace vgpu
