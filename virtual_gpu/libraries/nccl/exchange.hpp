// What several ranks do together: a collective, or a send and its receive. Here is who waits for whom, what
// moves and how long it takes; when it happens is up to the ranks' operations (operation.hpp).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime.hpp"
#include "nccl.h"
#include "race/happens_before.hpp"

namespace vgpu::nccl {

enum class Kind { kAllGather, kReduceScatter, kAllReduce, kBroadcast, kReduce, kSend, kReceive };

/// "ncclAllReduce".
const char* name_of(Kind kind);

/// One call of the program, on one rank.
struct Call {
  Kind kind;
  const std::byte* send;  // null where the rank has nothing to send
  std::byte* receive;     // null where the rank gets nothing
  std::size_t count;      // as the call has it
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  // the other rank of a send or receive, the root of a broadcast or reduction, else -1
  int rank, ranks;
  hb::CallSite site;
  int host_thread;  // that made it
  bool grouped;     // between ncclGroupStart() and ncclGroupEnd()

  std::size_t bytes() const;  // of `count` elements
  std::size_t send_bytes() const;
  std::size_t receive_bytes() const;
  bool is_pair() const { return kind == Kind::kSend || kind == Kind::kReceive; }
  /// True if ranks cannot have made both calls in one collective, or as the two sides of a pair.
  bool differs_from(const Call& other) const;
  const char* name() const { return name_of(kind); }
  /// "ncclSend of 4096 bytes to rank 1".
  std::string describe() const;
  /// "rank 0's ncclSend of 1024 float32 to rank 1, called at ring.cu:12".
  std::string describe_fully() const;
};

/// Bytes on their way.
struct Bytes {
  std::vector<std::byte> data;
  memcheck::Written written;
};

/// One rank's part in an exchange.
struct Side {
  enum class State { kQueued, kArrived, kDone, kLost };  // lost: discarded before it was done

  Side(Call call, int device) : call(std::move(call)), device(device) {}

  Call call;
  int device;
  Stream* stream = nullptr;  // of its operation
  State state = State::kQueued;
  double arrival = 0;         // when the rank's channels ran, ns
  double rate = 0;            // bytes per nanosecond of those channels
  std::optional<double> end;  // when its part is over, ns; known once all that it waits for have arrived
  bool staged = false;
  Bytes sent;  // what the rank sends, once it has been read
};

class Exchange {
 public:
  /// Sides: one for each rank of a collective; sender and receiver of a pair. `devices`: by rank.
  Exchange(Runtime& runtime, int sides, std::vector<int> devices)
      : runtime_(runtime), sides_(sides), devices_(std::move(devices)) {}

  /// The place of the call among the sides.
  static int index_of(const Call& call) {
    return call.is_pair() ? (call.kind == Kind::kSend ? 0 : 1) : call.rank;
  }
  Side& join(Call call);
  Side* side(int index) { return sides_[index].get(); }
  /// Any side that has been called.
  const Side* first() const;
  bool complete() const;

  /// The rank's channels run from `time` on. Books the links for all sides that can now say when they end.
  void arrive(int index, double time);
  /// True if the side's part can be done: `end` is known, and nobody that it needs has been lost.
  bool can_finish(int index) const;
  /// The side's operation is discarded.
  void lose(int index);
  /// Reads what the side sends, unless that has happened.
  void stage(int index, const Operation& operation);
  /// Writes what the side gets. Stages what it is made of; `operation` is the receiving rank's.
  void deliver(int index, const Operation& operation);
  /// The side has ended: counts what it has sent.
  void done(int index);
  /// For deadlock reports: for whom the side waits; empty if for nobody.
  std::string missing(int index) const;

 private:
  /// The sides whose arrival that one's end waits for, apart from itself: these and no others.
  std::vector<int> awaited(int index) const;
  /// The sides whose data that one's result is made of.
  std::vector<int> sources(int index) const;
  /// Bytes that leave and reach the rank over links, and bytes copied within the GPU.
  struct Load {
    std::size_t out, in, local;
  };
  Load load(int index) const;
  double book(int index);
  /// Of `from` the bytes that begin at `first`.
  void write(Side& side, std::size_t offset, const Bytes& from, std::size_t first, std::size_t bytes,
             const Operation& operation);
  const Bytes& reduced();
  bool alive(const void* memory, const Side& side, const Operation& operation);

  Runtime& runtime_;
  std::vector<std::unique_ptr<Side>> sides_;  // null until called
  std::vector<int> devices_;
  std::optional<Bytes> reduced_;
  bool any_lost_ = false;
};

}  // namespace vgpu::nccl
