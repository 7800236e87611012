// The call log: what a student's program asked of CUDA, cuBLAS and NCCL, a call a line.
//
//   overlap call log 1
//   ranks 2 calls 1
//   0 stream                                          @ ranks.cpp:117
//   0 malloc 4096                                     @ ring_all_gather.cuh:68
//   0 copy m1.0+512 a0.0 512 s0.0                     @ ring_all_gather.cuh:91
//
// A line has the rank whose host made the call, the call, its arguments and, behind " @ ", the program's
// line. The order of lines counts within a rank alone: what else comes before what, the calls say. Objects
// are named by a letter, the rank that made them and how many of their kind that rank had made before:
//
//   m1.0+512   byte 512 of the first memory of rank 1 (malloc, malloc_host)      null: no memory
//   a0.1+64    byte 64 of what rank 0 gets as A in call 1; likewise b and c
//   s0.0       a stream, "default" the default stream;  e0.0 an event;  h0.0 a cuBLAS handle;
//   n0.0       a communicator of NCCL
//
// The calls and their arguments stand in kForms, in call_log.cpp. `call I s` begins call I of the algorithm,
// on that stream, `end I` ends it. `stopped NAME`, as a rank's last line: the call NAME failed, for instance
// since it would have waited for ever. `unknown NAME`: a call that no log can repeat.
//
// A log comes from a process that nobody trusts. read_call_log() takes any bytes: what it returns names only
// memory that is there, within its bounds, and objects that its rank has made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace overlap::teaching {

/// A log's bounds, which the writer keeps and the reader demands.
///@{
inline constexpr std::size_t kMostLogBytes = 16 << 20;
inline constexpr std::size_t kMostLogLines = 200000;
inline constexpr std::size_t kMostLineBytes = 1000;
inline constexpr std::size_t kMostObjects = 4096;                     ///< of a kind, of a rank
inline constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 30;  ///< bytes of all memory of a log
inline constexpr double kMostMultiplyAdds = 1e11;                     ///< of all products of a log
inline constexpr std::uint64_t kMostThreads = 50'000'000;             ///< of all kernels of a log
///@}

/// What cannot be read or replayed, and why: one sentence.
class LogError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The calls of a log.
enum class LogCall {
  kDevice,
  kMalloc,
  kMallocHost,
  kFree,
  kStream,
  kStreamDestroy,
  kEvent,
  kEventDestroy,
  kRecord,
  kWait,
  kSyncStream,
  kSyncEvent,
  kSyncDevice,
  kBarrier,
  kCopySync,
  kCopy,
  kCopyPeer,
  kFillSync,
  kFill,
  kRaise,
  kAwait,
  kBlas,
  kBlasDestroy,
  kBlasStream,
  kGemm,
  kComm,
  kCommDestroy,
  kGroupStart,
  kGroupEnd,
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kReduce,
  kSend,
  kReceive,
  kLaunch,
  kCall,
  kEnd,
  kStopped,
  kUnknown,
};

/// The word of a call in a log, and its arguments, a letter each: p memory, s e h n objects, i a number, f a
/// float's bits, w the rest of the line as a word, * the arguments of a kernel. Null: there is no such word.
struct LogForm {
  LogCall call;
  std::string_view word;
  std::string_view arguments;
};
const LogForm* form_of(std::string_view word);
const LogForm& form_of(LogCall call);

/// An argument of a call.
struct LogValue {
  char kind = 'i';           ///< i a number; m a b c memory; 0 null; s e h n objects; d the default stream
  int rank = 0;              ///< of memory and objects
  int index = 0;             ///< of memory and objects: how many before; of a b c: the call
  std::uint64_t number = 0;  ///< the number; of memory: the offset in bytes
};

/// A line of a log.
struct LogLine {
  LogCall call;
  std::vector<LogValue> values;
  std::string word;   ///< of kLaunch the kernel, of kStopped and kUnknown the call
  std::string place;  ///< "ring.cuh:59"; empty if the log does not say
};

/// What a rank gets for one call.
struct OperandBytes {
  std::uint64_t a, b, c;
};

/// What the judge knows beforehand, and the log has no say in.
struct LogCase {
  int ranks;
  int calls;
  std::vector<OperandBytes> operands;  ///< by rank
};

/// A log that has been checked.
struct CallLog {
  std::vector<std::vector<LogLine>> ranks;         ///< the calls of each, in order
  std::vector<std::vector<std::uint64_t>> memory;  ///< bytes of each rank's memories, by index
  std::vector<bool> stopped;                       ///< by rank: its calls end with one that failed
  /// Bytes from there to the end of that memory.
  std::uint64_t room(const LogValue& address, const LogCase& known) const;
};

/// Reads a log of this case. Throws LogError.
CallLog read_call_log(std::string_view text, const LogCase& known);

}  // namespace overlap::teaching
