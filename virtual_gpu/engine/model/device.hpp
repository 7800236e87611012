// One virtual GPU: its streams, and the hardware whose time the model accounts for.
#pragma once

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "engine/model/machine.hpp"
#include "engine/streams/pull_queue.hpp"
#include "engine/streams/stream.hpp"

namespace vgpu {

/// What one kernel block occupies on its multiprocessor.
struct Footprint {
  int threads;
  std::size_t shared_bytes;
};

/// Which multiprocessor has room for a block, and from when on.
class Multiprocessors {
 public:
  struct Place {
    int multiprocessor;
    double time;  // ns
  };
  static constexpr double kRunning = std::numeric_limits<double>::infinity();

  explicit Multiprocessors(const Machine& machine)
      : machine_(machine), multiprocessors_(machine.multiprocessors) {}

  /// Blocks of that size that one multiprocessor holds at once; 0 if it holds none.
  int capacity(const Footprint& block) const;
  /// The earliest place from `not_before` on that is free without the end of a running block; false if none.
  /// With `any_time` the least loaded one, so that later fits do not depend on modelled times.
  bool find(const Footprint& block, double not_before, bool any_time, Place& place) const;
  /// The same for `count` blocks at once, each on another multiprocessor; empty if there is no room.
  std::vector<Place> find_several(const Footprint& block, int count, double not_before, bool any_time) const;
  /// Takes the place until release(). Returns an id for it.
  int occupy(const Footprint& block, const Place& place);
  void release(int id, int multiprocessor, double end);
  /// Occupies up to `count` places, at most one on each multiprocessor, that are free at some time from
  /// `not_before` to `not_after`, each for `duration` ns. Returns how many, and raises `end` to their end.
  std::uint64_t fill(const Footprint& block, double not_before, double not_after, double duration,
                     std::uint64_t count, double& end);
  /// Forgets all blocks.
  void clear();
  /// Grows with every change; a result of find() holds as long as it stays the same.
  std::uint64_t version() const { return version_; }

 private:
  struct Resident {
    int id;
    Footprint block;
    double end;  // kRunning until the block ends
  };
  struct Multiprocessor {
    std::vector<Resident> residents;  // by end
    double forgotten = 0;             // who ended until then is no longer listed
  };
  /// What is on a multiprocessor at some time; ordered by blocks first.
  struct Load {
    int blocks = 0;
    int threads = 0;
    std::size_t shared_bytes = 0;
    auto operator<=>(const Load&) const = default;
  };
  static Load load_after(const Multiprocessor& multiprocessor, double time);
  bool find_on(const Multiprocessor& multiprocessor, const Footprint& block, double not_before,
               double& time) const;

  const Machine& machine_;
  std::vector<Multiprocessor> multiprocessors_;
  int next_id_ = 0;
  std::uint64_t version_ = 0;
};

/// A group of copy engines of one GPU that serve the same direction.
class CopyEngines {
 public:
  explicit CopyEngines(int count) : free_at_(count, 0.0) {}
  /// Books the engine that is free first for `duration` ns, from `ready` on at the earliest. Returns the end.
  double book(double ready, double duration);
  /// When the first engine is free, `ready` at the earliest.
  double free_from(double ready) const;
  /// Takes the engine that is free first until `end`.
  void occupy_until(double end);

 private:
  std::vector<double> free_at_;
};

/// One direction of the link between a GPU and its peers: transfers take turns, in the order of booking.
class Port {
 public:
  double free_at() const { return free_at_; }
  /// Takes it for `duration` ns until `end`, behind all copies that took it before.
  void occupy_until(double end, double duration);
  /// Takes the port for `duration` ns, from `ready` on at the earliest. Returns the end.
  double book(double ready, double duration);
  /// The same for kernels' accesses, in pieces: blocks that run ahead ask for later times first. Copies do
  /// not wait for it.
  double fill(double ready, double duration);

 private:
  void add(double begin, double end);

  double free_at_ = 0;
  std::map<double, double> busy_;  // begin -> end, apart from each other
};

class Device {
 public:
  /// `timeline`: where its streams enter what their operations occupied.
  Device(int id, const Machine& machine, std::vector<TimelineEntry>& timeline);

  int id() const { return group_.device; }

  /// Its streams; the first is the legacy default stream.
  const std::vector<std::shared_ptr<Stream>>& streams() const { return streams_; }
  /// Those that hold operations.
  const std::vector<Stream*>& busy_streams() const { return group_.busy; }
  Stream& default_stream() { return *streams_.front(); }
  Stream& add_stream(bool blocking);
  /// A stream for one branch of an executable graph; `what`: for its name.
  std::shared_ptr<Stream> add_branch(const std::string& what);
  /// Forgets destroyed streams whose work is done.
  void collect_streams();
  /// Gives up everything that its streams hold, at modelled time `now`, ns.
  void discard_work(double now, const void* order);
  /// What all later work of this GPU waits for: a synchronous copy to or from another GPU. Null: nothing.
  const Token& serialized() const { return serialized_; }
  /// All later work waits for what completes with `token`.
  void serialize_after(const Token& token) { serialized_ = token; }

  /// True if it may access the memory of that GPU directly.
  bool may_access(int gpu) const { return peers_.contains(gpu); }
  /// Both return false if that is so already.
  bool allow_access(int gpu) {
    memcheck::allow_peer(id(), gpu, true);
    return peers_.insert(gpu).second;
  }
  bool forbid_access(int gpu) {
    memcheck::allow_peer(id(), gpu, false);
    return peers_.erase(gpu) != 0;
  }

  /// Bytes of its memory that are allocated.
  std::size_t memory_used() const { return memory_used_; }
  void take_memory(std::size_t bytes) { memory_used_ += bytes; }
  void give_memory_back(std::size_t bytes) { memory_used_ -= bytes; }

  /// Its hardware.
  ///@{
  Multiprocessors& multiprocessors() { return multiprocessors_; }
  const Multiprocessors& multiprocessors() const { return multiprocessors_; }
  CopyEngines& from_host() { return from_host_; }
  CopyEngines& to_host() { return to_host_; }
  CopyEngines& between_gpus() { return between_gpus_; }
  CopyEngines& local() { return local_; }
  Port& egress() { return egress_; }
  Port& ingress() { return ingress_; }
  /// The same of its rail, to GPUs of other nodes.
  Port& rail_out() { return rail_out_; }
  Port& rail_in() { return rail_in_; }
  /// The order of pulls from this GPU.
  PullQueue& pulls() { return pulls_; }
  ///@}

 private:
  StreamGroup group_;
  std::vector<std::shared_ptr<Stream>> streams_;
  int next_stream_ = 1;
  std::set<int> peers_;
  Multiprocessors multiprocessors_;
  CopyEngines from_host_, to_host_, between_gpus_, local_;
  Port egress_, ingress_, rail_out_, rail_in_;
  std::size_t memory_used_ = 0;
  Token serialized_;
  PullQueue pulls_;
};

/// What bytes take from one GPU to another, out of the first and into the second.
struct Link {
  Port &out, &in;
  double rate;             // bytes per nanosecond
  double copy_latency_ns;  // of a copy engine
};

/// All GPUs of the machine, by number.
using Devices = std::vector<std::unique_ptr<Device>>;

}  // namespace vgpu
