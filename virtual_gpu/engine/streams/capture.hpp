// Stream capture: what is enqueued into a capturing stream becomes a node of a graph instead of running. The
// rules are those of the CUDA Programming Guide, "Creating a Graph Using Stream Capture".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/streams/stream.hpp"
#include "vgpu/types.h"

namespace vgpu {

class Device;
class HostThreads;

struct GraphNode {
  std::shared_ptr<const Operation> work;  // never runs itself: each launch runs what its again() gives
  unsigned branch;
  std::size_t place;            // in the branch, from 0
  std::vector<unsigned> after;  // nodes of other branches that come before it, besides those of its own
};

/// What one stream has captured: a chain.
struct GraphBranch {
  int device;
  std::vector<unsigned> nodes;
};

/// A captured graph: nodes in the order of their capture, which is one in which they can run.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphBranch> branches;
};

/// One capture, from cudaStreamBeginCapture to cudaStreamEndCapture.
struct Capture {
  unsigned long long id;
  Stream* origin;  // where it began and must end
  cudaStreamCaptureMode mode;
  int host_thread;  // which began it
  std::shared_ptr<Graph> graph;
  std::vector<Stream*> streams;  // that capture: the origin, and those that joined
  bool invalidated = false;      // by a call that a capture forbids
  bool ended = false;
};

/// The captures in progress. A forbidden call invalidates them: their streams then refuse everything but the
/// capture's end, which fails, too.
class Captures {
 public:
  explicit Captures(HostThreads& hosts) : hosts_(hosts) {}

  void begin(Stream& stream, cudaStreamCaptureMode mode);
  /// Ends the capture and returns its graph; throws if the capture is invalid or becomes so now.
  std::shared_ptr<Graph> end(Stream& stream);

  /// Makes the operation the next node of a stream that captures.
  void add(Stream& stream, std::unique_ptr<Operation> operation);
  /// cudaEventRecord into a stream that captures.
  void record(Event& event, Stream& stream);
  /// cudaStreamWaitEvent, if the stream captures or the event was recorded in a capture: the stream joins it.
  void wait(Stream& stream, const Event& event);
  /// A stream that captures is destroyed: its nodes remain. Without its origin a capture cannot end any more.
  void forget(Stream& stream);

  /// The following throw, and invalidate, if a capture forbids what is about to be done.
  ///@{
  /// Synchronising or asking the stream, the event or the whole GPU.
  void check_wait(const Stream& stream);
  void check_wait(const Event& event);
  void check_wait(const Device& device);
  /// Calls that may have to wait for the GPU, as the mode says: cudaThreadExchangeStreamCaptureMode.
  void check_unsafe_call();
  /// Uses of the legacy default stream, which waits for all blocking streams of its GPU.
  void check_default_stream(const Device& device);
  ///@}
  /// The same without consequences, for a call that only asks whether a stream captures.
  void check_default_stream_asked(const Device& device) const;
  /// What a capturing stream cannot do, on real GPUs or on virtual ones. Invalidates its capture.
  [[noreturn]] void refuse(const Stream& stream, const std::string& sentence);

 private:
  std::vector<std::shared_ptr<Capture>> of_blocking_streams(const Device& device) const;
  /// Off all streams, and no longer under way.
  void close(const std::shared_ptr<Capture>& capture);

  HostThreads& hosts_;
  std::vector<std::shared_ptr<Capture>> active_;
  unsigned long long next_id_ = 1;
};

}  // namespace vgpu
