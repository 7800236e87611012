#include "engine/streams/capture.hpp"

#include <algorithm>
#include <utility>

#include "engine/host/api_error.hpp"
#include "engine/host/host_threads.hpp"
#include "engine/model/device.hpp"

namespace vgpu {
namespace {

void check_valid(const Capture& capture) {
  if (capture.invalidated) {
    throw ApiError(cudaErrorStreamCaptureInvalidated,
                   "an earlier call has invalidated the capture that began in " + capture.origin->name());
  }
}

[[noreturn]] void invalidate(Capture& capture, cudaError_t code, const std::string& sentence) {
  capture.invalidated = true;
  throw ApiError(code, sentence);
}

/// Adds the nodes of `more` that are not there yet.
void merge(std::vector<unsigned>& nodes, const std::vector<unsigned>& more) {
  for (const unsigned node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

/// A node that none of `last` comes after; the graph's size if there is none.
std::size_t unjoined_node(const Graph& graph, const std::vector<unsigned>& last) {
  std::vector<std::size_t> reached(graph.branches.size(), 0);  // of each branch, so many nodes
  std::vector<unsigned> open = last;
  while (!open.empty()) {
    const GraphNode& node = graph.nodes[open.back()];
    open.pop_back();
    const std::vector<unsigned>& branch = graph.branches[node.branch].nodes;
    for (std::size_t& count = reached[node.branch]; count <= node.place; ++count) {
      const std::vector<unsigned>& after = graph.nodes[branch[count]].after;
      open.insert(open.end(), after.begin(), after.end());
    }
  }
  for (std::size_t branch = 0; branch < reached.size(); ++branch) {
    const std::vector<unsigned>& nodes = graph.branches[branch].nodes;
    if (reached[branch] < nodes.size()) return nodes[reached[branch]];
  }
  return graph.nodes.size();
}

}  // namespace

void Captures::begin(Stream& stream, cudaStreamCaptureMode mode) {
  if (stream.is_default())
    throw ApiError(cudaErrorStreamCaptureUnsupported, "the default stream cannot capture");
  if (stream.captured_.capture)
    throw ApiError(cudaErrorIllegalState, stream.name() + " is capturing already");
  auto capture = std::make_shared<Capture>(
      Capture{next_id_++, &stream, mode, hosts_.current().number(), std::make_shared<Graph>(), {&stream}});
  capture->graph->branches.push_back({stream.device(), {}});
  stream.captured_ = {capture, 0, {}};
  active_.push_back(std::move(capture));
}

std::shared_ptr<Graph> Captures::end(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.captured_.capture;
  if (!capture) throw ApiError(cudaErrorIllegalState, stream.name() + " is not capturing");
  if (capture->origin != &stream) {
    invalidate(*capture, cudaErrorStreamCaptureUnmatched,
               stream.name() + " has joined the capture; it began, and ends, in " + capture->origin->name());
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->host_thread != hosts_.current().number()) {
    invalidate(*capture, cudaErrorStreamCaptureWrongThread,
               "another host thread began the capture, and not in mode cudaStreamCaptureModeRelaxed");
  }
  const std::vector<unsigned> last = stream.captured_.after;
  close(capture);
  check_valid(*capture);
  const std::shared_ptr<Graph> graph =
      std::exchange(capture->graph, nullptr);  // events still hold the capture
  const std::size_t unjoined = unjoined_node(*graph, last);
  if (unjoined < graph->nodes.size()) {
    const Operation& work = *graph->nodes[unjoined].work;
    const std::string line = hb::describe(work.site);
    throw ApiError(cudaErrorStreamCaptureUnjoined,
                   work.describe() + (line.empty() ? "" : ", enqueued at " + line) +
                       ", was captured in another stream, and " + stream.name() + " does not wait for it");
  }
  return graph;
}

void Captures::close(const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) stream->captured_ = {};
  capture->ended = true;
  std::erase(active_, capture);
}

void Captures::add(Stream& stream, std::unique_ptr<Operation> operation) {
  CapturePosition& position = stream.captured_;
  check_valid(*position.capture);
  std::shared_ptr<Operation> work = operation->again();
  if (!work) refuse(stream, operation->describe() + " cannot be captured on virtual GPUs");
  work->captured_at(hb::call_site(operation->site.through_kernel));
  Graph& graph = *position.capture->graph;
  std::vector<unsigned>& branch = graph.branches[position.branch].nodes;
  // A branch is a chain: what comes before of the same branch need not be said.
  std::erase_if(position.after, [&](unsigned node) { return graph.nodes[node].branch == position.branch; });
  // Of the edges to a node, that of the branch alone can be programmatic.
  work->launched_programmatically(operation->programmatic && !branch.empty() && position.after.empty());
  const auto node = static_cast<unsigned>(graph.nodes.size());
  graph.nodes.push_back({std::move(work), position.branch, branch.size(), std::move(position.after)});
  branch.push_back(node);
  position.after = {node};
}

void Captures::record(Event& event, Stream& stream) {
  check_valid(*stream.captured_.capture);
  event.captured_ = stream.captured_;
}

void Captures::wait(Stream& stream, const Event& event) {
  CapturePosition& to = stream.captured_;
  const CapturePosition& from = event.captured_;
  if (to.capture) check_valid(*to.capture);
  if (to.capture && (!from.capture || from.capture->ended)) {
    invalidate(*to.capture, cudaErrorStreamCaptureIsolation,
               "the event was not recorded in the capture that " + stream.name() + " takes part in");
  }
  if (from.capture->ended)
    throw ApiError(cudaErrorCapturedEvent, "the event was recorded in a capture, which has ended");
  check_valid(*from.capture);
  if (stream.is_default())
    invalidate(*from.capture, cudaErrorStreamCaptureUnsupported, "the default stream cannot capture");
  if (!to.capture) {
    Graph& graph = *from.capture->graph;
    to = {from.capture, static_cast<unsigned>(graph.branches.size()), {}};
    graph.branches.push_back({stream.device(), {}});
    from.capture->streams.push_back(&stream);
  } else if (to.capture != from.capture) {
    to.capture->invalidated = true;
    invalidate(*from.capture, cudaErrorStreamCaptureMerge,
               "the event was recorded in another capture than " + stream.name() + " takes part in");
  }
  merge(to.after, from.after);
}

void Captures::forget(Stream& stream) {
  const std::shared_ptr<Capture> capture = std::exchange(stream.captured_, {}).capture;
  if (!capture) return;
  std::erase(capture->streams, &stream);
  if (capture->origin != &stream) return;
  capture->invalidated = true;
  close(capture);
}

void Captures::check_wait(const Stream& stream) {
  if (stream.captured_.capture) {
    check_valid(*stream.captured_.capture);
    refuse(stream, stream.name() + " is capturing: its work does not run, so waiting for it would not end");
  }
  check_unsafe_call();
}

void Captures::check_wait(const Event& event) {
  if (event.captured_.capture) {
    invalidate(*event.captured_.capture, cudaErrorCapturedEvent,
               "the event was last recorded in a capturing stream: that never completes");
  }
  check_unsafe_call();
}

void Captures::check_wait(const Device& device) {
  for (const auto& stream : device.streams()) {
    if (stream->captured_.capture) check_wait(*stream);
  }
  check_unsafe_call();
}

void Captures::check_unsafe_call() {
  const HostThread& host = hosts_.current();
  if (active_.empty() || host.capture_mode() == cudaStreamCaptureModeRelaxed) return;
  const Capture* forbids = nullptr;
  for (const auto& capture : active_) {
    const bool own = capture->mode != cudaStreamCaptureModeRelaxed && capture->host_thread == host.number();
    const bool others =
        capture->mode == cudaStreamCaptureModeGlobal && host.capture_mode() == cudaStreamCaptureModeGlobal;
    if (!own && !others) continue;
    capture->invalidated = true;
    forbids = capture.get();
  }
  if (forbids == nullptr) return;
  throw ApiError(
      cudaErrorStreamCaptureUnsupported,
      "the call may have to wait for a GPU, which the capture in " + forbids->origin->name() + " forbids");
}

std::vector<std::shared_ptr<Capture>> Captures::of_blocking_streams(const Device& device) const {
  std::vector<std::shared_ptr<Capture>> captures;
  if (active_.empty()) return captures;
  for (const auto& stream : device.streams()) {
    if (stream->blocking() && stream->captured_.capture) captures.push_back(stream->captured_.capture);
  }
  return captures;
}

void Captures::check_default_stream(const Device& device) {
  for (const auto& capture : of_blocking_streams(device)) capture->invalidated = true;
  check_default_stream_asked(device);
}

void Captures::check_default_stream_asked(const Device& device) const {
  if (of_blocking_streams(device).empty()) return;
  throw ApiError(cudaErrorStreamCaptureImplicit,
                 "a blocking stream of GPU " + std::to_string(device.id()) +
                     " is capturing, and the default stream would have to wait for it");
}

void Captures::refuse(const Stream& stream, const std::string& sentence) {
  invalidate(*stream.captured_.capture, cudaErrorStreamCaptureUnsupported, sentence);
}

}  // namespace vgpu
