#include "engine/streams/queues.hpp"

namespace vgpu {

Token Queues::enqueue(Stream& stream, std::unique_ptr<Operation> operation) {
  if (stream.captures()) {
    captures_.add(stream, std::move(operation));
    return nullptr;
  }
  // Legacy default stream (CUDA Programming Guide, "Default Stream"): its operations wait for all blocking
  // streams of the device, and those wait for it.
  Device& owner = *devices_[stream.device()];
  if (stream.is_default()) {
    for (const Token& token : pending(stream)) {
      if (token != stream.last()) operation->wait_for(token);  // its own order is the queue's
    }
  } else if (stream.blocking()) {
    operation->wait_for(owner.default_stream().last());
  }
  operation->wait_for(owner.serialized());
  const HostThread& host = hosts_.current();
  operation->take_number(next_operation_++);
  operation->enqueued_at(hb::call_site(operation->site.through_kernel), host.now(), host.labels());
  hb::release(hb::host_context(), operation.get());
  Token done = operation->done;
  if (hosts_.stopping()) {
    operation->discarded(host.now());
    return done;
  }
  operation->take_turns_in(queue_pull(*operation, stream.device(), done));
  stream.push(std::move(operation));
  return done;
}

void Queues::enqueue_node(Stream& stream, std::unique_ptr<Operation> node) {
  node->take_number(next_operation_++);
  stream.push(std::move(node));
}

PullQueue* Queues::queue_pull(const Operation& operation, int device, const Token& done) {
  const int source = operation.pulls_from(device);
  if (source == kHost || hosts_.stopping()) return nullptr;
  PullQueue& pulls = devices_[source]->pulls();
  pulls.insert(schedule_.random() ? 0 : hosts_.current().now(), done);
  return &pulls;
}

std::vector<Token> Queues::pending(const Device& device) const {
  std::vector<Token> tokens;
  for (const auto& stream : device.streams()) tokens.push_back(stream->last());
  return tokens;
}

std::vector<Token> Queues::pending(const Stream& stream) const {
  if (!stream.is_default()) return {stream.last()};
  std::vector<Token> tokens;
  for (const auto& other : devices_[stream.device()]->streams()) {
    if (other->blocking()) tokens.push_back(other->last());
  }
  return tokens;
}

}  // namespace vgpu
