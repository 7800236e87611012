// Streams and events of one virtual GPU.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "engine/capture.hpp"
#include "engine/operation.hpp"
#include "engine/stream_contexts.hpp"

namespace vgpu {

/// A queue of operations that run one after the other.
class Stream {
 public:
  /// `what`: for its name, "stream2" if it is one of the program's.
  Stream(int device, int number, bool blocking, const std::string& what)
      : contexts("gpu" + std::to_string(device) + "/" + what),
        device_(device),
        number_(number),
        blocking_(blocking) {}
  Stream(int device, int number, bool blocking)
      : Stream(device, number, blocking, "stream" + std::to_string(number)) {}

  void push(std::unique_ptr<Operation> operation);
  /// The operation that runs or is next to run; nullptr if there is none.
  Operation* head() const { return queue_.empty() ? nullptr : queue_.front().get(); }
  void pop(double end);
  /// Gives up all operations; to whom waits for them they are complete.
  /// What its threads have done comes before whatever acquires `order`.
  void discard(double now, const void* order);
  /// True if the head may begin; `time` gets the modelled time at which it does.
  bool can_begin(double& time) const;
  /// Completion of all that has been enqueued so far; nullptr if nothing has.
  Token last() const { return last_; }
  const std::deque<std::unique_ptr<Operation>>& queue() const { return queue_; }

  int device() const { return device_; }
  int number() const { return number_; }
  /// False if it takes no part in the legacy default stream's ordering.
  bool blocking() const { return blocking_; }
  bool is_default() const { return number_ == 0; }
  /// "gpu1/stream2"; stream 0 is the legacy default stream.
  std::string name() const;

  bool destroyed = false;    // gone for the program, kept until its work is done
  StreamContexts contexts;   // what its CUDA threads run on
  CapturePosition captured;  // if it captures

 private:
  int device_;
  int number_;
  bool blocking_;
  double free_at_ = 0;
  Token last_;
  std::deque<std::unique_ptr<Operation>> queue_;
};

struct Event {
  int device;
  bool timing;
  Token last_record;              // completion of the last cudaEventRecord; nullptr: never recorded
  CapturePosition captured = {};  // if that was in a capturing stream
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
