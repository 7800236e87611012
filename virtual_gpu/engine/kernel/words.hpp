// What threads did with words in memory: for reports of races and of deadlocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "vgpu/atomics.h"

namespace vgpu {

/// What a thread last looked at without seeing a change.
struct Look {
  const void* address = nullptr;
  std::uint64_t bits = 0;
  ProgramPlace at;
  std::optional<std::uint64_t> awaited;  // by a compare-and-swap
};

/// A wait for an mbarrier that returned at once, because its phase was another one already.
struct PassedWait {
  const void* word = nullptr;    // null: there was none
  const void* caller = nullptr;  // return address into the kernel
  bool parity = false;
  std::uint64_t phase = 0;
  std::string describe() const;
};

/// Which fences a thread has passed.
struct Fences {
  bool of_system, of_gpu, of_block;
  bool order(bool one_gpu, bool one_block) const {
    return of_system || (one_gpu && of_gpu) || (one_block && of_block);
  }
};

/// A thread has seen what another one wrote.
struct Handover {
  AtomicCall write, read;
  std::uint64_t writer = 0;  // KernelRecords::thread_number()
  Fences writer_passed;
  const void* word = nullptr;
  bool one_gpu = true;  // both threads are on the same one
  /// A sentence, if `thread` is of the writer's block and the two atomic operations order nothing; else "".
  /// The reader, a thread of the same block or not, has passed these fences since.
  std::string describe_missing(std::uint64_t thread, bool one_block, Fences reader_passed) const;
};

/// "atomicCAS at x.cu:12".
std::string describe(const AtomicCall& call);
/// " at x.cu:12"; "" if it is not known.
std::string describe(const ProgramPlace& place);

/// Who changed each word last; in the race build.
class WordWriters {
 public:
  void wrote(const void* word, std::uint64_t thread, int device, const AtomicCall& call, Fences passed) {
    writers_[word] = {thread, device, call, passed};
  }
  /// What `reader` on GPU `device` sees there; nothing if it is its own.
  std::optional<Handover> seen(const void* word, std::uint64_t reader, int device,
                               const AtomicCall& call) const {
    const auto found = writers_.find(word);
    if (found == writers_.end() || found->second.thread == reader) return std::nullopt;
    const Writer& writer = found->second;
    return Handover{writer.call, call, writer.thread, writer.passed, word, writer.device == device};
  }
  /// Words that kernels have accessed as volatile.
  void is_volatile(const void* word) { volatile_.insert(word); }
  bool was_volatile(const void* word) const { return volatile_.contains(word); }

 private:
  struct Writer {
    std::uint64_t thread;
    int device;
    AtomicCall call;
    Fences passed;
  };
  std::unordered_map<const void*, Writer> writers_;
  std::unordered_set<const void*> volatile_;
};

}  // namespace vgpu
