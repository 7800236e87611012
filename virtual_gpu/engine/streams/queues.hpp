// How operations come into streams, and what CUDA's rules order them after.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/host/host_threads.hpp"
#include "engine/model/device.hpp"
#include "engine/schedule.hpp"
#include "engine/streams/capture.hpp"

namespace vgpu {

class Queues {
 public:
  Queues(const Devices& devices, HostThreads& hosts, Schedule& schedule, Captures& captures)
      : devices_(devices), hosts_(hosts), schedule_(schedule), captures_(captures) {}

  /// Adds `operation` to the stream. Returns its token; null if the stream captures.
  Token enqueue(Stream& stream, std::unique_ptr<Operation> operation);
  /// Adds a node of a graph that runs to the stream of its branch. It knows what it waits for.
  void enqueue_node(Stream& stream, std::unique_ptr<Operation> node);
  /// Adds `done` to the queue of pulls of `operation` in a stream of GPU `device`. Returns the queue; nullptr
  /// if it is no pull, or while host threads are stopped.
  PullQueue* queue_pull(const Operation& operation, int device, const Token& done);

  /// Completions of all that the streams of a device hold.
  std::vector<Token> pending(const Device& device) const;
  /// Unfinished work of the stream; of the default stream also that of all blocking streams.
  std::vector<Token> pending(const Stream& stream) const;

 private:
  const Devices& devices_;
  HostThreads& hosts_;
  Schedule& schedule_;
  Captures& captures_;
  std::uint64_t next_operation_ = 1;
};

}  // namespace vgpu
