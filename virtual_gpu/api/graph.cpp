// Stream capture and graphs.
#include <algorithm>
#include <utility>

#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"
#include "engine/streams/graph.hpp"

namespace vgpu {
namespace {

template <class T, class Handle>
std::shared_ptr<T> find(const HandleTable<T>& graphs, Handle handle) {
  if (auto found = graphs.find(handle)) return found;
  throw ApiError(cudaErrorInvalidValue, "this graph does not exist (any more)");
}

/// The stream, even if it must not be used now.
Stream& asked_stream(Runtime& runtime, cudaStream_t handle) {
  Stream& stream = runtime.find_stream(handle);
  if (stream.is_default()) runtime.captures().check_default_stream_asked(runtime.device(stream.device()));
  return stream;
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.captures()) return cudaStreamCaptureStatusNone;
  return stream.captured().capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                                : cudaStreamCaptureStatusActive;
}

void check_mode(cudaStreamCaptureMode mode) {
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
    throw ApiError(cudaErrorInvalidValue, "there is no capture mode " + std::to_string(mode));
}

void instantiate(Runtime& runtime, cudaGraphExec_t* exec, cudaGraph_t handle, unsigned long long flags) {
  if (exec == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer to the result is null");
  if (flags != 0) throw ApiError(cudaErrorInvalidValue, "no flags are supported");
  auto made = std::make_shared<GraphExec>(runtime, find(runtime.graphs(), handle));
  *exec = reinterpret_cast<cudaGraphExec_t>(runtime.graph_execs().add(std::move(made)));
}

cudaGraphNode_t node_handle(const GraphNode& node) {
  return reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(&node));
}

struct Difference {
  cudaGraphExecUpdateResult result;
  const GraphNode* node;  // of the new graph; null: no single one
};

/// What keeps an executable of `from` from running `to` instead.
Difference compare(const Graph& from, const Graph& to) {
  const auto device = [](const Graph& graph, const GraphNode& node) {
    return graph.branches[node.branch].device;
  };
  if (from.nodes.size() != to.nodes.size() || from.branches.size() != to.branches.size())
    return {cudaGraphExecUpdateErrorTopologyChanged, nullptr};
  for (std::size_t i = 0; i < to.nodes.size(); ++i) {
    const GraphNode &before = from.nodes[i], &now = to.nodes[i];
    if (before.branch != now.branch || before.after != now.after ||
        before.work->programmatic != now.work->programmatic)
      return {cudaGraphExecUpdateErrorTopologyChanged, &now};
    if (before.work->work().kind != now.work->work().kind)
      return {cudaGraphExecUpdateErrorNodeTypeChanged, &now};
    if (device(from, before) != device(to, now)) return {cudaGraphExecUpdateErrorParametersChanged, &now};
  }
  return {cudaGraphExecUpdateSuccess, nullptr};
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return api_call("cudaStreamBeginCapture", [&](Runtime& runtime) {
    check_mode(mode);
    runtime.captures().begin(runtime.stream(stream), mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return api_call("cudaStreamEndCapture", [&](Runtime& runtime) {
    if (graph == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer to the graph is null");
    *graph = nullptr;
    *graph =
        reinterpret_cast<cudaGraph_t>(runtime.graphs().add(runtime.captures().end(runtime.stream(stream))));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return api_call("cudaStreamIsCapturing",
                  [&](Runtime& runtime) { *status = status_of(asked_stream(runtime, stream)); });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id) {
  return api_call("cudaStreamGetCaptureInfo", [&](Runtime& runtime) {
    const Stream& stream = asked_stream(runtime, handle);
    *status = status_of(stream);
    if (id != nullptr && *status == cudaStreamCaptureStatusActive) *id = stream.captured().capture->id;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api_call("cudaThreadExchangeStreamCaptureMode", [&](Runtime& runtime) {
    check_mode(*mode);
    *mode = runtime.host().exchange_capture_mode(*mode);
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return api_call("cudaGraphInstantiate",
                  [&](Runtime& runtime) { instantiate(runtime, exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return api_call("cudaGraphInstantiateWithFlags",
                  [&](Runtime& runtime) { instantiate(runtime, exec, graph, flags); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  return api_call("cudaGraphLaunch", [&](Runtime& runtime) {
    const std::shared_ptr<GraphExec> launched = find(runtime.graph_execs(), exec);
    Stream& stream = runtime.stream(handle);
    if (stream.captures())
      runtime.captures().refuse(stream, "virtual GPUs do not capture a graph into another one");
    runtime.queues().enqueue(stream, std::make_unique<GraphLaunch>(runtime, launched));
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle) {
  return api_call("cudaGraphUpload", [&](Runtime& runtime) {
    find(runtime.graph_execs(), exec);
    Stream& stream = runtime.stream(handle);
    if (stream.captures()) runtime.captures().refuse(stream, stream.name() + " is capturing");
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return api_call("cudaGraphExecUpdate", [&](Runtime& runtime) {
    if (info == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer to the result is null");
    *info = {cudaGraphExecUpdateError, nullptr, nullptr};
    GraphExec& updated = *find(runtime.graph_execs(), exec);
    const std::shared_ptr<Graph> next = find(runtime.graphs(), graph);
    const Difference difference = compare(*updated.graph, *next);
    info->result = difference.result;
    if (difference.node != nullptr) info->errorNode = node_handle(*difference.node);
    if (difference.result != cudaGraphExecUpdateSuccess) {
      throw ApiError(cudaErrorGraphExecUpdateFailure,
                     "the graph differs from the instantiated one in more than what its nodes are given" +
                         (difference.node == nullptr ? "" : ": " + difference.node->work->describe()));
    }
    updated.graph = next;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return api_call("cudaGraphExecDestroy", [&](Runtime& runtime) {
    runtime.graph_execs().remove(find(runtime.graph_execs(), exec).get());
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return api_call("cudaGraphDestroy",
                  [&](Runtime& runtime) { runtime.graphs().remove(find(runtime.graphs(), graph).get()); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return api_call("cudaGraphGetNodes", [&](Runtime& runtime) {
    if (count == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer to the number is null");
    const std::shared_ptr<Graph> found = find(runtime.graphs(), graph);
    const std::vector<GraphNode>& all = found->nodes;
    if (nodes != nullptr) {
      for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < all.size() ? node_handle(all[i]) : nullptr;
      *count = std::min(*count, all.size());
    } else {
      *count = all.size();
    }
  });
}
