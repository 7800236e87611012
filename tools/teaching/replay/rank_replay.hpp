// Makes the calls of one rank's log again.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "call_log.hpp"
#include "operands.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::teaching {

/// The list's entry of a kernel that a line launches. Throws LogError if it is not on the list, or would
/// leave its memory.
const KernelEntry& kernel_of(const LogLine& line, const CallLog& log, const LogCase& known);

/// What the ranks of a replay share. Ranks are host threads of one another: each writes what is its own.
struct ReplayShared {
  ReplayShared(const CallLog& of, const LogCase& with);

  /// Memory of a rank, by number; null: not made yet, or freed.
  using Places = std::vector<std::atomic<std::byte*>>;
  /// A rank's part of a call, on its GPU.
  struct Operands {
    std::byte *a = nullptr, *b = nullptr, *c = nullptr;
  };

  const CallLog& log;
  const LogCase& known;
  std::vector<CallValues> values;               // by call
  std::vector<Places> memory;                   // by rank
  std::vector<std::vector<Operands>> operands;  // by rank and call
  std::vector<ncclUniqueId> communicators;      // by number; the same on all ranks
  std::vector<Verification> found;              // by rank
};

/// One rank's part of a replay.
class RankReplay {
 public:
  /// Allocates the rank's operands. Collective: when it returns, those of all ranks are there.
  RankReplay(Rank& rank, ReplayShared& shared);

  /// Makes all calls. Each call of the algorithm stands between the judge's own work on its stream: A and B
  /// come before it; behind it C is fetched, and A and B are overwritten. `before_first`: done by all ranks
  /// when their first call begins. Throws std::runtime_error, which names the line, if a call fails.
  void run(const std::function<void()>& before_first);
  /// Waits for the calls' streams and compares. Throws as run() does.
  void finish();

 private:
  /// Pinned memory of a call.
  struct HostData {
    PinnedBuffer<std::byte> a, b, c;
  };

  void make(const LogLine& line);
  void make_library_call(const LogLine& line);
  void launch(const LogLine& line);
  void gemm(const std::vector<LogValue>& values);
  void begin_call(int call, cudaStream_t stream);
  void end_call(int call);
  void add_memory(std::byte* memory);

  std::byte* memory(const LogValue& value) const;
  cudaStream_t stream(const LogValue& value) const;

  Rank& rank_;
  ReplayShared& shared_;
  std::size_t id_;
  std::vector<HostData> host_;         // by call
  std::vector<cudaStream_t> streams_;  // by number, likewise below
  std::vector<cudaEvent_t> events_;
  std::vector<cublasHandle_t> blas_;
  std::vector<ncclComm_t> communicators_;
  std::vector<bool> pinned_;  // by number of memory
  std::size_t made_memory_ = 0;
  std::vector<cudaStream_t> call_streams_;
};

}  // namespace overlap::teaching
