// Streams and events of one virtual GPU.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernel/stream_contexts.hpp"
#include "engine/streams/operation.hpp"
#include "vgpu/timeline.hpp"

namespace vgpu {

struct Capture;
class Stream;

/// What the streams of one GPU share.
struct StreamGroup {
  int device;
  std::vector<TimelineEntry>& timeline;  // of all GPUs: streams enter what their operations occupied
  std::vector<Stream*> busy{};           // those that hold operations, by number: most hold none
};

/// Where in a capture a stream is, or an event was recorded.
struct CapturePosition {
  std::shared_ptr<Capture> capture;  // null: in none
  unsigned branch = 0;               // of the graph: each capturing stream has one
  std::vector<unsigned> after;       // nodes that come before what comes next
};

/// A queue of operations that run one after the other.
class Stream {
 public:
  /// `what`: for its name, "stream2" if it is one of the program's.
  Stream(StreamGroup& group, int number, bool blocking, const std::string& what)
      : contexts_("gpu" + std::to_string(group.device) + "/" + what, group.device),
        group_(group),
        number_(number),
        blocking_(blocking) {}
  Stream(StreamGroup& group, int number, bool blocking)
      : Stream(group, number, blocking, "stream" + std::to_string(number)) {}

  void push(std::unique_ptr<Operation> operation);
  /// The operation that runs or is next to run; nullptr if there is none.
  Operation* head() const { return queue_.empty() ? nullptr : queue_.front().get(); }
  /// The kernel behind the head, if it is launched to run beside it: else nullptr.
  Operation* dependent() const {
    return queue_.size() > 1 && queue_[1]->primary != nullptr ? queue_[1].get() : nullptr;
  }
  void pop(double end);
  /// Discards all operations, which count as complete; releases the threads' accesses at `order`.
  void discard(double now, const void* order);
  /// True if the head or its dependent may begin; `time` gets the modelled time at which it does.
  bool can_begin(const Operation& operation, double& time) const;
  /// Completion of all that has been enqueued so far; nullptr if nothing has.
  Token last() const { return last_; }
  const std::deque<std::unique_ptr<Operation>>& queue() const { return queue_; }

  int device() const { return group_.device; }
  int number() const { return number_; }
  /// False if it takes no part in the legacy default stream's ordering.
  bool blocking() const { return blocking_; }
  bool is_default() const { return number_ == 0; }
  /// "gpu1/stream2"; stream 0 is the legacy default stream.
  std::string name() const;

  /// It is gone for the program, and kept until its work is done.
  void destroy() { destroyed_ = true; }
  bool destroyed() const { return destroyed_; }
  std::vector<TimelineEntry>& timeline() const { return group_.timeline; }
  /// What its CUDA threads run on.
  StreamContexts& contexts() { return contexts_; }
  /// Where it is in a capture, if it captures.
  const CapturePosition& captured() const { return captured_; }
  bool captures() const { return captured_.capture != nullptr; }

 private:
  friend class Captures;  // moves it through a capture

  StreamContexts contexts_;
  // Of dependent kernels, alternately: a kernel that does not synchronise with its primary orders nothing, so
  // the kernels before and behind it must not share contexts.
  std::unique_ptr<StreamContexts> dependents_[2];
  std::shared_ptr<Primary> last_kernel_;  // if it was enqueued last
  CapturePosition captured_;
  bool destroyed_ = false;
  StreamGroup& group_;
  int number_;
  bool blocking_;
  double free_at_ = 0;
  Token last_;
  std::deque<std::unique_ptr<Operation>> queue_;
};

class Event {
 public:
  Event(int device, bool timing) : device_(device), timing_(timing) {}

  int device() const { return device_; }
  bool timing() const { return timing_; }
  /// cudaEventRecord into a stream that does not capture: `token` tells when it completes.
  void record(const Token& token) {
    last_record_ = token;
    captured_ = {};
  }
  /// Completion of the last record; nullptr: there was none.
  const Token& last_record() const { return last_record_; }
  /// Where in a capture that was, if it was in a capturing stream.
  const CapturePosition& captured() const { return captured_; }
  bool was_captured() const { return captured_.capture != nullptr; }

 private:
  friend class Captures;  // records it in captures

  int device_;
  bool timing_;
  Token last_record_;
  CapturePosition captured_;
};

/// cudaEventRecord: completes when all earlier work of the stream has. `done` becomes the event's token.
class RecordOperation final : public Operation {
 public:
  void begin(double now) override { finish(now); }
  std::string describe() const override { return "event record"; }
  bool only_waits() const override { return true; }
};

/// cudaStreamWaitEvent: its tokens are what it waits for.
class WaitOperation final : public Operation {
 public:
  void begin(double now) override { finish(now); }
  std::string describe() const override { return "wait for an event"; }
  bool only_waits() const override { return true; }
};

}  // namespace vgpu
