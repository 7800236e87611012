// What streams hold: operations, and the tokens by which they wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "race/happens_before.hpp"
#include "vgpu/control.hpp"
#include "vgpu/timeline.hpp"

namespace vgpu {

class PullQueue;
class Stream;
class StreamContexts;

/// Completion of one operation; outlives the operation for those that wait for it.
struct Completion {
  bool complete = false;
  double time = 0;  // modelled time of completion, ns

  void complete_at(double end) {
    complete = true;
    time = end;
  }
};
using Token = std::shared_ptr<Completion>;

/// What a programmatic dependent launch (CUDA Programming Guide, there) sees of its primary, the kernel
/// before it.
struct Primary {
  Token done;
  const StreamContexts* contexts;  // in which it runs; end_kernel() releases this address
  bool triggered = false;   // by each of its blocks, or these have ended: the dependent kernel may begin
  double triggered_at = 0;  // modelled time, ns
};

class Operation;
class HostThread;

/// Hardware that an operation occupied.
struct Span {
  int device;
  std::string engine;  // as in TimelineEntry
  double begin, end;   // modelled, ns
};

/// A launch of a graph, as the operations see it that are its nodes (graph.hpp).
class RunningGraph {
 public:
  /// The node of that branch that was running has completed at modelled time `end`, ns.
  virtual void node_finished(unsigned branch, double end) = 0;
  /// The stream in whose lane of a timeline the branch is drawn.
  virtual const Stream& lane(unsigned branch) const = 0;

 protected:
  ~RunningGraph() = default;
};

/// Something that could happen next. The scheduler chooses one of all steps that are possible.
struct Step {
  double time;  // modelled time at which it happens, ns
  Operation* operation;
  std::int64_t item;           // which of the operation's steps; kBegin: its first
  bool poll = false;           // a waiting kernel block that looks again
  HostThread* host = nullptr;  // instead of an operation: this host thread goes on
  bool idle = false;           // a poll of a block that repeats what it did: Block::idle()
};
inline constexpr std::int64_t kBegin = -1;

/// One entry of a stream. It begins at the head of its stream, when its tokens are complete and its turn in
/// the queue of pulls has come; then it offers steps until it calls finish().
class Operation {
 public:
  virtual ~Operation() = default;

  /// Starts at modelled time `now`, ns. May finish at once.
  virtual void begin(double now) = 0;
  /// Appends the steps that are possible now, in an order that does not depend on modelled time.
  virtual void offer(std::vector<Step>& /*steps*/) {}
  virtual void step(const Step& /*step*/) {}
  /// For reports: "copy of 4096 bytes from the host to GPU 1".
  virtual std::string describe() const = 0;
  /// For deadlock reports: what it has done and what it lacks.
  virtual std::string progress() const {
    return begun ? "running" : "waiting for an event or another stream";
  }
  /// "gpu1/stream2" and, in the race build, the line of the program that enqueued it.
  std::string origin() const;
  /// In the race build ", enqueued at ring.cu:59", of a node of a graph ", captured at"; else "".
  std::string enqueued_at() const;
  /// True if that token tells that the operation, or a part of it, is complete.
  virtual bool completes(const Token& token) const { return done == token; }
  /// In a stream of GPU `device`: the GPU in whose queue of pulls it takes its turn; kHost: in none.
  virtual int pulls_from(int /*device*/) const { return kHost; }
  /// True if the operation reads or writes part of that memory. Kernels cannot tell.
  virtual bool touches(const void* /*memory*/, std::size_t /*bytes*/) const { return false; }

  /// True if a kernel's threads look at that word again and again.
  virtual bool polls(const void* /*word*/) const { return false; }

  /// A kernel: what a dependent launch right behind it sees of it.
  virtual std::shared_ptr<Primary> as_primary() { return nullptr; }

  /// A copy for the next launch of a graph; null if the operation cannot be captured.
  virtual std::unique_ptr<Operation> again() const { return nullptr; }

  /// For a timeline.
  virtual Work work() const { return {"kernel", describe()}; }
  /// True if it occupies no hardware while it runs: a timeline shows a gap.
  virtual bool only_waits() const { return false; }

  // ---- What happens to it, in about this order: others change what is below by these functions alone ------

  /// A kernel was launched: the program's line is that of the kernel, which calls the runtime.
  void called_through_kernel() { site.through_kernel = true; }
  /// A kernel was launched with cudaLaunchAttributeProgrammaticStreamSerialization.
  void launched_programmatically(bool allowed) { programmatic = allowed; }
  /// It begins after what this token tells of; a null one tells of nothing.
  void wait_for(const Token& token) {
    if (token) waits_for.push_back(token);
  }
  /// It becomes part of a graph: it never runs itself, but again() does.
  void captured_at(const hb::CallSite& where) {
    site = where;
    done = nullptr;
  }
  /// A host thread with these labels enqueues it, at that time of its clock, ns.
  void enqueued_at(const hb::CallSite& where, double time, std::vector<std::string> labels_of_host);
  /// A graph's launch with these labels enqueues it in a branch, at modelled time `time`, ns: it is
  /// captured.again().
  void enqueued_by(RunningGraph& launch, unsigned its_branch, const Operation& captured, double time,
                   std::vector<std::string> labels_of_launch);
  /// By this token others wait for it already.
  void tell_by(Token token) { done = std::move(token); }
  /// It also has to wait for its turn there; null: nowhere.
  void take_turns_in(PullQueue* queue) { pulls = queue; }
  void take_number(std::uint64_t number) { id = number; }
  /// It is now the last one in that stream.
  void joined(Stream& its_stream);
  /// It may begin while its primary still runs, in contexts of its own.
  void depends_on(std::shared_ptr<const Primary> its_primary, StreamContexts& its_contexts) {
    primary = std::move(its_primary);
    contexts_ = &its_contexts;
  }
  /// The scheduler has chosen it: from modelled time `time`, ns, on it runs.
  void started(double time) {
    begun = true;
    occupied_from = time;
  }
  /// It will not run: the run has been stopped, or its device was reset. Who waits for it goes on.
  void discarded(double time) { done->complete_at(time); }

  /// What it runs on: the stream's, or those beside them.
  StreamContexts& contexts() const { return *contexts_; }

  std::uint64_t id = 0;  // order of enqueueing
  Stream* stream = nullptr;
  double enqueued = 0;  // host clock, ns
  bool begun = false;
  // Modelled ns from which on it occupies multiprocessors: later than its begin if it had to wait for room.
  double occupied_from = 0;
  std::vector<Span> spans;          // what it occupies instead: copy engines
  std::vector<std::string> labels;  // of the host thread that enqueued it
  hb::CallSite site;                // who enqueued it
  std::vector<Token> waits_for;
  PullQueue* pulls = nullptr;  // where it also has to be the first one to begin; null: nowhere
  Token done = std::make_shared<Completion>();
  RunningGraph* graph = nullptr;  // what it is a node of
  unsigned branch = 0;            // of the graph; its stream is that branch's
  bool programmatic = false;      // a launch that may depend on the kernel before it alone
  std::shared_ptr<const Primary>
      primary;  // which kernel that is; null: it comes after all that is in its stream

 protected:
  /// Completes at modelled time `end`, ns, and takes the operation off its stream: `this` dies.
  void finish(double end);

 private:
  /// Enters what it occupied into the timeline.
  void record(double end) const;

  StreamContexts* contexts_ = nullptr;
};

}  // namespace vgpu
